package cell

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFormulasBecomeTextAndNumbersStayNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"=1+cmd|x": "'=1+cmd|x", "+SUM(A1)": "'+SUM(A1)", "-x": "'-x", "@a": "'@a", "\t=1": "'\t=1", "\r=1": "'\r=1",
		"\n=1": "'\n=1", "＝1": "'＝1", "'=1": "''=1", "-1": "-1", "+1": "+1", "-1.5e-3": "-1.5e-3", "": "", "spam": "spam",
		"'tis": "'tis", "a=b": "a=b",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPlainUndoesText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("'=+-@\t\ra1.＝")), 0, 6, -1).Draw(t, "text")
		if got := Plain(Text(text)); got != text {
			t.Fatalf("%q becomes %q and then %q", text, Text(text), got)
		}
	})
}

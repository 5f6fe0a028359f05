// Package choosing says what a setting of a plan was chosen to be, where the plan leaves that to
// the program, and what the other words would have cost.
package choosing

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Choice is how one setting was chosen for the runs of a point.
type Choice struct {
	// Setting is the path of its key in the plan, and Chosen the word that runs use.
	Setting string `json:"setting"`
	Chosen  string `json:"chosen"`
	// Costs are those of all words that could have been chosen, the cheapest first; none where there
	// were too many workers to weigh them.
	Costs []Cost `json:"costs"`
	// Assumed says what was taken for granted that the plan does not say; empty for nothing.
	Assumed string `json:"assumed,omitempty"`
}

// Cost is what one word of the setting costs by formula.
type Cost struct {
	Word string `json:"word"`
	// Seconds are those of one exchange between all workers.
	Seconds float64 `json:"exchange_s"`
}

// Of is the cost of a word; the zero Cost if there is none of it.
func (c *Choice) Of(word string) Cost {
	i := slices.IndexFunc(c.Costs, func(o Cost) bool { return o.Word == word })
	if i < 0 {
		return Cost{}
	}
	return c.Costs[i]
}

// String says what was chosen, and what each word costs.
func (c *Choice) String() string {
	if len(c.Costs) == 0 {
		return fmt.Sprintf("%s is %s, without a comparison: there are too many workers for one", c.Setting, c.Chosen)
	}
	texts := make([]string, len(c.Costs))
	for i, o := range c.Costs {
		texts[i] = o.String()
	}
	text := fmt.Sprintf("%s is %s; by formula an exchange takes %s", c.Setting, c.Chosen, strings.Join(texts, ", "))
	if c.Assumed != "" {
		text += " (" + c.Assumed + ")"
	}
	return text
}

// String is the time and the word, such as "1.25s with ring".
func (o Cost) String() string { return o.Time() + " with " + o.Word }

// Time is the time of an exchange in three digits.
func (o Cost) Time() string {
	d := time.Duration(o.Seconds * 1e9)
	unit := time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

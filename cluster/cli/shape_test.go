package cli_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// npyFile returns a file of NumPy's that holds bytes; fortran is True or False.
func npyFile(shape, fortran string, content []byte) string {
	head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': %s, 'shape': %s, }", fortran, shape)
	head += strings.Repeat(" ", 64-(len(head)+11)%64) + "\n"
	length := binary.LittleEndian.AppendUint16(nil, uint16(len(head)))
	return "\x93NUMPY\x01\x00" + string(length) + head + string(content)
}

// Images with the channels last do not fit a model that takes them first, whatever the file format:
// plan check and run name both shapes and the setting that moves the channels.
func TestImagesWithTheirChannelsLastAreRefused(t *testing.T) {
	const samples = 40
	pixels, labels := make([]byte, samples*6*6*3), make([]byte, samples)
	for i := range pixels {
		pixels[i] = byte(i * 7)
	}
	for i := range labels {
		labels[i] = byte(i % 2)
	}
	enter(t, "")
	shape := fmt.Sprintf("(%d, 6, 6, 3)", samples)
	ys := npyFile(fmt.Sprintf("(%d,)", samples), "False", labels)
	write(t, "y.npy", ys)
	write(t, "x.npy", npyFile(shape, "False", pixels))
	write(t, "fortran.npy", npyFile(shape, "True", pixels))
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"x.npy": npyFile(shape, "True", pixels), "y.npy": ys} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, "both.npz", archive.String())
	write(t, "x.idx", string(idxFile(pixels, samples, 6, 6, 3)))
	write(t, "y.idx", string(idxFile(labels, samples)))
	for _, data := range []string{
		"{set: npy, x: x.npy, y: y.npy", "{set: npy, x: fortran.npy, y: y.npy",
		"{set: npz, file: both.npz, x: x, y: y", "{set: idx, images: x.idx, labels: y.idx",
	} {
		plan := func(end string) string {
			return "data: " + data + end + "}\nmodel: {kind: network, input: [3, 6, 6], layers: [{kind: conv2d, channels: 2, " +
				"kernel: 3}, relu, flatten, {kind: dense, outputs: 2}]}\ntrain: {batch: 4}\narchitecture: {kind: gossip}\n" +
				"nodes: [{name: p, count: 2, compute: {step: 5ms}}]\nstop: {steps: 2}\n"
		}
		write(t, "plan.yaml", plan(""))
		for _, command := range [][]string{{"run", "plan.yaml"}, {"plan", "check", "plan.yaml"}} {
			code, out, errs := gradwire(t, command...)
			if command[0] == "run" {
				expectCode(t, cli.ExitInput, code, errs)
			}
			for _, want := range []string{"[6 6 3]", "[3 6 6]", "layout: channels-last"} {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%s, %v: no %q in\n%s%s", data, command, want, out, errs)
				}
			}
		}
		write(t, "plan.yaml", plan(", layout: channels-last"))
		code, _, errs := gradwire(t, "run", "plan.yaml")
		expectCode(t, cli.ExitDone, code, errs)
	}
}

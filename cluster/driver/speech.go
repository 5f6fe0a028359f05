package driver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
)

// maxSpeech bounds what a client and a process say to each other at a time, in bytes.
const maxSpeech = 4 << 20

// Bounds of texts that actors and the system have a say in, in bytes.
const (
	maxWords = 64 << 10
	// maxListed is the bound where there may be as many texts as submissions or nodes.
	maxListed = 1 << 10
	// maxLine is that of a line of a log, of which a message carries maxTold.
	maxLine = 8 << 10
)

// words is a text as a message can carry it. One that is not UTF-8, as errors about files or of actors may be, would keep
// the whole message from being sent.
func words(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// say writes a message behind its length.
func say(w io.Writer, m proto.Message) error {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 4, 512), m)
	if err != nil {
		return err
	}
	if len(b)-4 > maxSpeech {
		return fmt.Errorf("a message of %d bytes; at most %d can be sent", len(b)-4, maxSpeech)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	_, err = w.Write(b)
	return err
}

// hear reads what say has written.
func hear(r *bufio.Reader, m proto.Message) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxSpeech {
		return fmt.Errorf("a message of %d bytes; at most %d are accepted", n, maxSpeech)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

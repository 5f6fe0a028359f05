package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// stream reads records and puts frames together. Values go from the connection straight
// into the memory of their tensors, but for what came along with a head. Nothing is
// allocated for a length before it was compared with the limits, and a tensor
// only when its values begin.
type stream struct {
	in      *bufio.Reader
	tensors *protos.TensorPool
	posted  func(f *wire.Frame, tensor, values int) *protos.Tensor // may be nil
	rode    func(taken uint32) error                               // see peer.rode; may be nil
	limit   int                                                    // bytes of values of a frame

	heads   wire.Decoder
	scratch []byte
	frame   wire.Frame // urgent, or the last one of bulk that is complete
	partial partial
}

// partial is a bulk frame of which values are missing.
type partial struct {
	frame   wire.Frame
	lengths []int
	left    int    // bytes missing
	open    []byte // of the last tensor, what is missing
}

// arrival is what the reading of a record, or of several, has led to.
type arrival struct {
	kind  byte        // urgentRecord, bulkRecord, beatRecord or farewellRecord
	frame *wire.Frame // until the next read; of the first two
	beat  beat
}

// read returns the next arrival. The error wraps ErrBad, wire's errors included, if the
// fault is in the bytes, and is the connection's otherwise. If a frame is at fault, the kind says
// which: it would be so on any connection.
func (s *stream) read() (arrival, error) {
	for {
		header, err := s.in.Peek(recordHeader)
		if err != nil {
			return arrival{}, cut(err, len(header) > 0)
		}
		kind, length, err := record(header)
		if err != nil {
			return arrival{}, err
		}
		taken := ride(header)
		s.in.Discard(recordHeader) //nolint:errcheck // these bytes are in the buffer
		switch kind {
		case beatRecord:
			body, err := s.take(length)
			if err != nil {
				return arrival{}, err
			}
			return arrival{kind: kind, beat: getBeat(body)}, nil
		case farewellRecord:
			if s.partial.left > 0 {
				return arrival{}, bad("farewell inside a frame")
			}
			return arrival{kind: kind}, nil
		case urgentRecord, bulkRecord:
			if err := s.tell(kind, taken); err != nil {
				return arrival{}, err
			}
			err = s.begin(kind, length)
		case moreRecord:
			err = s.more(length)
		default:
			err = bad("record of kind %d behind the greeting", kind)
		}
		if err != nil && kind != moreRecord && errors.Is(err, ErrBad) {
			return arrival{kind: kind}, err
		}
		if err != nil {
			return arrival{}, err
		}
		if kind == urgentRecord || s.partial.left == 0 {
			return s.complete(kind), nil
		}
	}
}

// complete hands out the frame that has just become whole.
func (s *stream) complete(kind byte) arrival {
	if kind == urgentRecord {
		return arrival{kind: kind, frame: &s.frame}
	}
	s.frame, s.partial = s.partial.frame, partial{}
	return arrival{kind: bulkRecord, frame: &s.frame}
}

// cut tells the end of a connection between two records from one inside.
func cut(err error, inside bool) error {
	if errors.Is(err, io.EOF) && inside {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take reads n bytes, at most as many as a greeting or a head has, which are good until
// the next call.
func (s *stream) take(n int) ([]byte, error) {
	if cap(s.scratch) < n {
		s.scratch = make([]byte, n)
	}
	b := s.scratch[:n]
	_, err := io.ReadFull(s.in, b)
	return b, cut(err, true)
}

// tell tells what came with the first record of a bulk frame, before there is memory for its
// values: what has become free may serve.
func (s *stream) tell(kind byte, taken uint32) error {
	if kind == urgentRecord || s.rode == nil {
		return nil
	}
	return s.rode(taken)
}

func (s *stream) begin(kind byte, length int) error {
	b, err := s.take(wire.PrefixSize)
	if err != nil {
		return err
	}
	p, err := wire.DecodePrefix(b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	rest := length - wire.PrefixSize - p.Head
	switch {
	case rest < 0:
		return bad("record of %d bytes for a head of %d", length, p.Head)
	case kind == urgentRecord && (p.Tensors > 0 || rest > 0):
		return bad("urgent frame with %d tensors and %d bytes behind its head", p.Tensors, rest)
	case kind == bulkRecord && s.partial.left > 0:
		return bad("frame inside another")
	}
	if b, err = s.take(p.Head); err != nil {
		return err
	}
	f, lengths, err := s.heads.Head(p, b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if kind == urgentRecord {
		s.frame = f
		return nil
	}
	left := 0
	for _, n := range lengths {
		left += 4 * n
	}
	switch {
	case left > s.limit:
		return bad("tensors of %d bytes, accepted here are %d: %w", left, s.limit, wire.ErrTooLarge)
	case rest > left:
		return bad("%d bytes of values for tensors of %d", rest, left)
	}
	if len(lengths) > 0 {
		f.Tensors = make([]*protos.Tensor, 0, len(lengths))
	}
	s.partial = partial{frame: f, lengths: lengths, left: left}
	return s.values(rest)
}

func (s *stream) more(length int) error {
	if length > s.partial.left {
		return bad("%d bytes of values, %d are missing", length, s.partial.left)
	}
	return s.values(length)
}

// values reads n bytes into the tensors of the partial frame.
func (s *stream) values(n int) error {
	p := &s.partial
	for {
		for len(p.open) == 0 && len(p.frame.Tensors) < len(p.lengths) &&
			(n > 0 || p.lengths[len(p.frame.Tensors)] == 0) {
			t := s.memory(p.lengths[len(p.frame.Tensors)])
			p.frame.Tensors = append(p.frame.Tensors, t)
			p.open = view(t.Data)
		}
		if n == 0 {
			return nil
		}
		part := min(n, len(p.open))
		if _, err := io.ReadFull(s.in, p.open[:part]); err != nil {
			return cut(err, true)
		}
		p.open, n, p.left = p.open[part:], n-part, p.left-part
	}
}

// memory is that for the values of the next tensor of the partial frame. Of a small one much has
// arrived with the head.
func (s *stream) memory(values int) *protos.Tensor {
	if s.posted != nil && 4*values >= readAhead {
		f := &s.partial.frame
		if t := s.posted(f, len(f.Tensors), values); t != nil {
			if len(t.Data) == values {
				return t
			}
			t.Release()
		}
	}
	return s.tensors.Get(values)
}

// close gives the tensors of a frame that will never be whole back.
func (s *stream) close() {
	s.partial.frame.Release()
	s.partial = partial{}
}

// view is the memory of values as they go over the wire. Listen makes sure that this
// machine keeps them in the order of the wire.
func view(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

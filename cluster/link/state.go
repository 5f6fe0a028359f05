package link

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

var (
	_ encoding.BinaryMarshaler   = (*Network)(nil)
	_ encoding.BinaryUnmarshaler = (*Network)(nil)
)

// stateMagic begins a saved state; its digit is the version.
const stateMagic = "gwlink2\n"

// MarshalBinary saves the complete state: queues, random streams, what delay models remember, counts. The
// configuration is not in it.
func (n *Network) MarshalBinary() ([]byte, error) {
	b := append([]byte(nil), stateMagic...)
	b = appendWord(b, n.fingerprint())
	for i := range n.nodes {
		b = n.nodes[i].uplink.append(b)
		b = n.nodes[i].downlink.append(b)
	}
	used := n.Used()
	b = appendWord(b, uint64(len(used)))
	for _, e := range used {
		var err error
		if b, err = e.append(b); err != nil {
			return nil, fmt.Errorf("link %s → %s: saving its delay: %w", n.names[e.source], n.names[e.destination], err)
		}
	}
	return b, nil
}

// UnmarshalBinary restores what MarshalBinary saved, into a network of the same seed, nodes and configuration (that of the
// instant of saving, scheduled changes included). Pointers to edges stay valid. After an error the network is as it was.
func (n *Network) UnmarshalBinary(data []byte) error {
	d := &decoder{rest: data, size: len(data)}
	if string(d.take(len(stateMagic))) != stateMagic {
		return errors.New("link state: does not begin with the mark of a saved state of this version")
	}
	if d.word() != n.fingerprint() && d.err == nil {
		return errors.New("link state: saved from a network of another seed or other nodes")
	}
	queues := make([]queue, 2*len(n.nodes))
	for i := range queues {
		queues[i].read(d)
	}
	var edges []*Edge
	for range d.count() {
		e, err := n.readEdge(d, edges)
		if err != nil {
			return fmt.Errorf("link state: %w", err)
		}
		edges = append(edges, e)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("end of the state")
	}
	if d.err != nil {
		return fmt.Errorf("link state: %w", d.err)
	}
	n.restore(queues, edges)
	return nil
}

// restore puts decoded queues and edges in the place of the present ones.
func (n *Network) restore(queues []queue, edges []*Edge) {
	for i := range n.nodes {
		at := &n.nodes[i]
		at.uplink.resume(queues[2*i])
		at.downlink.resume(queues[2*i+1])
	}
	for _, e := range n.Used() {
		config := e.config
		*e = Edge{source: e.source, destination: e.destination, uplink: e.uplink, downlink: e.downlink}
		n.configure(e, config)
	}
	for _, saved := range edges {
		e := n.Edge(saved.source, saved.destination)
		saved.uplink, saved.downlink = e.uplink, e.downlink
		*e = *saved
	}
}

// fingerprint hashes what the random streams depend on.
func (n *Network) fingerprint() uint64 {
	h := hashWord(n.seed, uint64(len(n.names)))
	for _, name := range n.names {
		h, _ = streamSeed(h, name, "", "fingerprint")
	}
	return h
}

func (e *Edge) append(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(e.source))
	b = binary.BigEndian.AppendUint32(b, uint32(e.destination))
	b = e.line.append(b)
	b = appendWord(b, uint64(e.last))
	b = append(b, byte(e.channel))
	for _, count := range e.stats.counts() {
		b = appendWord(b, uint64(*count))
	}
	b = appendWord(b, uint64(e.stats.DelaySum))
	b = appendWord(b, uint64(e.stats.DelayMax))
	b = appendWord(b, uint64(e.stats.TookSum))
	b = e.delays.append(b)
	b = e.losses.append(b)
	b = appendBytes(b, []byte(e.kind()))
	var state []byte
	if e.process != nil {
		var err error
		if state, err = e.process.AppendBinary(nil); err != nil {
			return nil, err
		}
	}
	return appendBytes(b, state), nil
}

// readEdge decodes the edge that follows those already read, as one that is not yet part of the network.
func (n *Network) readEdge(d *decoder, before []*Edge) (*Edge, error) {
	e := &Edge{source: int32(d.half()), destination: int32(d.half())}
	if d.err != nil {
		return nil, d.err
	}
	if uint(e.source) >= uint(len(n.nodes)) || uint(e.destination) >= uint(len(n.nodes)) {
		return nil, fmt.Errorf("edge %d → %d in a network of %d nodes", e.source, e.destination, len(n.nodes))
	}
	if len(before) > 0 && !before[len(before)-1].precedes(e) {
		return nil, fmt.Errorf("edge %d → %d out of order", e.source, e.destination)
	}
	config := n.defaults
	if present := n.nodes[e.source].out.find(e.destination); present != nil {
		config = present.config
	}
	n.configure(e, config)
	if err := e.read(d); err != nil {
		return nil, fmt.Errorf("link %s → %s: %w", n.names[e.source], n.names[e.destination], err)
	}
	return e, nil
}

func (e *Edge) precedes(f *Edge) bool {
	return e.source < f.source || e.source == f.source && e.destination < f.destination
}

func (e *Edge) read(d *decoder) error {
	e.line.read(d)
	e.last = d.instant()
	if state := d.take(1); state != nil {
		e.channel = channel(state[0])
	}
	if e.channel > bad || e.channel != unset && e.config.Loss.Bursts == (Bursts{}) {
		d.fail("the state of loss bursts")
	}
	for _, count := range e.stats.counts() {
		*count = int64(d.word())
	}
	e.stats.DelaySum = time.Duration(d.word())
	e.stats.DelayMax = time.Duration(d.word())
	e.stats.TookSum = time.Duration(d.word())
	e.delays = e.delays.read(d)
	e.losses = e.losses.read(d)
	kind, state := string(d.bytes()), d.bytes()
	if d.err != nil {
		return d.err
	}
	if kind != e.kind() {
		return fmt.Errorf("saved with a delay of type %s, configured with %s", kind, e.kind())
	}
	if e.process == nil {
		return Stateless{}.UnmarshalBinary(state)
	}
	return e.process.UnmarshalBinary(state)
}

// kind is the Go type of the delay's description.
func (e *Edge) kind() string { return fmt.Sprintf("%T", e.config.Delay) }

func (s *Stats) counts() [10]*int64 {
	return [...]*int64{
		&s.Sent, &s.Delivered, &s.Dropped, &s.Lost, &s.Control,
		&s.SentBytes, &s.DeliveredBytes, &s.DroppedBytes, &s.ControlBytes, &s.DelayCount,
	}
}

func (q *queue) append(b []byte) []byte {
	b = appendWord(b, uint64(q.free))
	return appendWord(b, math.Float64bits(q.carry))
}

func (q *queue) read(d *decoder) {
	q.free = d.instant()
	q.carry = math.Float64frombits(d.word())
	if !(math.Abs(q.carry) <= 1) {
		d.fail("a fraction of a nanosecond")
	}
}

// resume takes over the state of a saved queue and keeps its own rate.
func (q *queue) resume(saved queue) { q.free, q.carry = saved.free, saved.carry }

func (s *stream) append(b []byte) []byte {
	if s == nil {
		return appendBytes(b, nil)
	}
	state, err := s.source.MarshalBinary()
	if err != nil {
		panic("link: a PCG cannot be saved")
	}
	return appendBytes(b, state)
}

// read sets the state of the stream in place, since a process may hold it; it makes the stream where there is none.
func (s *stream) read(d *decoder) *stream {
	state := d.bytes()
	if len(state) == 0 {
		if s != nil {
			d.fail("a random stream")
		}
		return s
	}
	if s == nil {
		s = newStream()
	}
	if d.err == nil && s.source.UnmarshalBinary(state) != nil {
		d.fail("a random stream")
	}
	return s
}

func appendWord(b []byte, w uint64) []byte { return binary.BigEndian.AppendUint64(b, w) }

func appendBytes(b, part []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
	return append(b, part...)
}

// decoder reads a state and remembers its first fault.
type decoder struct {
	rest []byte
	size int
	err  error
}

func (d *decoder) fail(expected string) {
	if d.err == nil {
		d.err = fmt.Errorf("byte %d of %d: expected %s", d.size-len(d.rest), d.size, expected)
	}
}

// take returns the next bytes; at the end of the state it fails and returns none.
func (d *decoder) take(length int) []byte {
	if d.err != nil || length < 0 || length > len(d.rest) {
		d.fail(fmt.Sprintf("%d bytes more", length))
		return nil
	}
	part := d.rest[:length]
	d.rest = d.rest[length:]
	return part
}

func (d *decoder) word() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) half() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) bytes() []byte { return d.take(int(d.half())) }

func (d *decoder) instant() time.Duration {
	t := time.Duration(d.word())
	if t < 0 || t > Horizon {
		d.fail("an instant between the beginning of a run and its horizon")
	}
	return t
}

// count returns the number of edges that follow, no more than there can be.
func (d *decoder) count() uint64 {
	const smallest = 8 + 16 + 8 + 1 + 13*8 + 4*4
	count := d.word()
	if count > uint64(len(d.rest)/smallest) {
		d.fail("fewer edges")
		return 0
	}
	return count
}

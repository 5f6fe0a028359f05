package membership

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"sync/atomic"
)

// How memberlist writes a packet: the label with its length behind labelMark, then, where there is
// a key, sealVersion, the nonce, and the sealed content with its tag. The label is authenticated.
const (
	labelMark   = 244
	sealVersion = 1
	nonceSize   = 12
	tagSize     = 16
)

// gate lets in what members of the cluster have sent, each packet once. memberlist would
// refuse strangers too, but does not count them, lets them take room in its queue, and takes
// a packet that was recorded for a new one.
type gate struct {
	prefix []byte // of every packet
	label  []byte
	seal   cipher.AEAD // nil without a key
	opened []byte
	seen   history

	oversized, foreign, replayed atomic.Uint64
}

func newGate(key []byte, label string) (*gate, error) {
	g := &gate{label: []byte(label), opened: make([]byte, 0, maxPacket)}
	if label != "" {
		g.prefix = append([]byte{labelMark, byte(len(label))}, label...)
	}
	if key == nil {
		return g, nil
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	g.prefix = append(g.prefix, sealVersion)
	g.seal, err = cipher.NewGCM(block)
	return g, err
}

// admits says whether a packet may come in, and counts it if not. It is called from one
// goroutine.
func (g *gate) admits(packet []byte) bool {
	if len(packet) > maxPacket {
		g.oversized.Add(1)
		return false
	}
	content, ok := bytes.CutPrefix(packet, g.prefix)
	if !ok || len(content) == 0 {
		g.foreign.Add(1)
		return false
	}
	if g.seal == nil {
		if content[0] == labelMark {
			g.foreign.Add(1)
			return false
		}
		return true
	}
	if len(content) < nonceSize+tagSize {
		g.foreign.Add(1)
		return false
	}
	nonce := content[:nonceSize]
	if _, err := g.seal.Open(g.opened, nonce, content[nonceSize:], g.label); err != nil {
		g.foreign.Add(1)
		return false
	}
	if !g.seen.first([nonceSize]byte(nonce)) {
		g.replayed.Add(1)
		return false
	}
	return true
}

// history knows the latest nonces, at least maxNonces of them and at most twice as many.
type history struct{ recent, older map[[nonceSize]byte]struct{} }

// first says whether a nonce is new, and remembers it.
func (h *history) first(nonce [nonceSize]byte) bool {
	if _, known := h.recent[nonce]; known {
		return false
	}
	if _, known := h.older[nonce]; known {
		return false
	}
	if h.recent == nil || len(h.recent) == maxNonces {
		h.older, h.recent = h.recent, map[[nonceSize]byte]struct{}{}
	}
	h.recent[nonce] = struct{}{}
	return true
}

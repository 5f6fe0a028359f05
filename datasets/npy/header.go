package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

// scanner reads the literal of a Python dictionary of the three keys that a header has.
type scanner struct {
	text string
	at   int
}

// parseHeader reads a header's text. With an error it returns the position that it is about.
func parseHeader(text string) (*header, int, error) {
	s := &scanner{text: text}
	h, err := s.dictionary()
	return h, s.at, err
}

func (s *scanner) blanks() {
	for s.at < len(s.text) && strings.IndexByte(" \t\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// skipToken skips blanks and the token, and reports whether it was there.
func (s *scanner) skipToken(token string) bool {
	s.blanks()
	if !strings.HasPrefix(s.text[s.at:], token) {
		return false
	}
	s.at += len(token)
	return true
}

func (s *scanner) expect(token string) error {
	if !s.skipToken(token) {
		return s.unexpected(strconv.Quote(token))
	}
	return nil
}

func (s *scanner) unexpected(wanted string) error {
	if s.at == len(s.text) {
		return fmt.Errorf("it ends where %s is expected", wanted)
	}
	return fmt.Errorf("%s where %s is expected", input.Quote(s.text[s.at:]), wanted)
}

func (s *scanner) dictionary() (*header, error) {
	h := &header{}
	seen := map[string]bool{}
	if err := s.expect("{"); err != nil {
		return nil, err
	}
	for !s.skipToken("}") {
		key, err := s.quoted()
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("the key %s is there twice", input.Quote(key))
		}
		seen[key] = true
		if err := s.expect(":"); err != nil {
			return nil, err
		}
		if err := s.value(h, key); err != nil {
			return nil, err
		}
		if s.skipToken("}") {
			break
		}
		if err := s.expect(","); err != nil {
			return nil, err
		}
	}
	if s.blanks(); s.at < len(s.text) {
		return nil, s.unexpected("the end of the header")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return nil, fmt.Errorf("the key %s is missing; descr, fortran_order and shape are expected", key)
		}
	}
	return h, nil
}

func (s *scanner) value(h *header, key string) (err error) {
	switch key {
	case "descr":
		if s.blanks(); strings.HasPrefix(s.text[s.at:], "[") {
			return fmt.Errorf("an element is a record; %s", accepted)
		}
		h.descr, err = s.quoted()
	case "fortran_order":
		switch {
		case s.skipToken("True"):
			h.fortran = true
		case !s.skipToken("False"):
			return s.unexpected("True or False")
		}
	case "shape":
		h.shape, err = s.tuple()
	default:
		return fmt.Errorf("unknown key %s; descr, fortran_order and shape are expected", input.Quote(key))
	}
	return err
}

// quoted reads a string without escapes.
func (s *scanner) quoted() (string, error) {
	s.blanks()
	if s.at == len(s.text) || s.text[s.at] != '\'' && s.text[s.at] != '"' {
		return "", s.unexpected("a string")
	}
	rest := s.text[s.at+1:]
	end := strings.IndexByte(rest, s.text[s.at])
	if end < 0 {
		return "", errors.New("a string without its closing quote")
	}
	s.at += end + 2
	return rest[:end], nil
}

func (s *scanner) tuple() (shape []int64, err error) {
	if err := s.expect("("); err != nil {
		return nil, err
	}
	for !s.skipToken(")") {
		s.blanks()
		digits := s.text[s.at:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, s.unexpected("a size")
		}
		if len(shape) == MaxDims {
			return nil, fmt.Errorf("more than %d dimensions", MaxDims)
		}
		s.at += len(digits)
		shape = append(shape, n)
		if s.skipToken(")") {
			break
		}
		if err := s.expect(","); err != nil {
			return nil, err
		}
	}
	return shape, nil
}

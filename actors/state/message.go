package state

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/gradwire/gradwire/protos"
)

// kind is a registered type of the values that an actor can receive.
type kind struct {
	name    string
	save    func(s *State, v any)
	restore func(s *State) any
}

var (
	byType = map[reflect.Type]*kind{}
	byName = map[string]*kind{}
)

func register(of reflect.Type, k *kind) struct{} {
	if byName[k.name] != nil || byType[of] != nil {
		panic("state: " + k.name + " is registered twice")
	}
	byType[of], byName[k.name] = k, k
	return struct{}{}
}

// Register gives a name to a type T of messages from timers and jobs, so that they can be saved. A
// package registers each of its types once:
//
//	var _ = state.Register[deadline]("federated.deadline")
//
// It panics if the name or the type is registered already.
func Register[T any, P interface {
	*T
	Declared
}](name string) struct{} {
	return register(reflect.TypeFor[T](), &kind{
		name:    name,
		save:    func(s *State, v any) { x := v.(T); P(&x).State(s) },
		restore: func(s *State) any { var x T; P(&x).State(s); return x },
	})
}

// RegisterPointer registers the type *T, as Register does T.
func RegisterPointer[T any, P interface {
	*T
	Declared
}](name string) struct{} {
	return register(reflect.TypeFor[P](), &kind{
		name:    name,
		save:    func(s *State, v any) { v.(P).State(s) },
		restore: func(s *State) any { x := P(new(T)); x.State(s); return x },
	})
}

// Any declares a value that an actor receives: a *protos.Message, a value of a registered type, or
// nil.
func (s *State) Any(name string, v *any) {
	s.Group(name, func(s *State) {
		if s.out != nil {
			s.saveAny(*v)
		} else {
			*v = s.restoreAny()
		}
	})
}

// messages names the type *protos.Message in a state.
const messages = "message"

func (s *State) saveAny(v any) {
	of := ""
	var declare func()
	switch m := v.(type) {
	case nil:
	case *protos.Message:
		of, declare = messages, func() { s.saveMessage(m) }
	default:
		k := byType[reflect.TypeOf(v)]
		if k == nil {
			s.Fail(fmt.Errorf("a %T cannot be saved: its type is not registered", v))
			return
		}
		of, declare = k.name, func() { k.save(s, v) }
	}
	Text(s, "type", &of)
	if declare != nil {
		declare()
	}
}

func (s *State) restoreAny() any {
	var of string
	Text(s, "type", &of)
	switch k := byName[of]; {
	case of == "":
		return nil
	case of == messages:
		return s.restoreMessage()
	case k == nil:
		s.Fail(fmt.Errorf("%w: this program has no type %s", ErrForeign, of))
		return nil
	default:
		return k.restore(s)
	}
}

// Message declares a message, or nil.
func (s *State) Message(name string, m **protos.Message) {
	switch {
	case s.out != nil && *m != nil:
		s.Group(name, func(s *State) { s.saveMessage(*m) })
	case s.lacks(name):
		*m = nil
	case s.out == nil:
		s.Group(name, func(s *State) { *m = s.restoreMessage() })
	}
}

func (s *State) saveMessage(m *protos.Message) {
	s.saveProto(m.Head)
	s.Tensors("tensors", &m.Tensors)
}

// restoreMessage returns a message with one reference. Receivers that shared a message each restore
// their own.
func (s *State) restoreMessage() *protos.Message {
	head := s.restoreProto()
	var tensors []*protos.Tensor
	s.Tensors("tensors", &tensors)
	if head == nil {
		return nil
	}
	return protos.NewMessage(head, tensors...)
}

// Messages declares a list of messages. None may be nil.
func (s *State) Messages(name string, all *[]*protos.Message) {
	List(s, name, all, func(s *State, m **protos.Message) { s.Message("message", m) })
}

// Proto declares a protobuf message without tensors, such as the head of a message, or nil.
func Proto[M proto.Message](s *State, name string, m *M) {
	var none M
	if s.out != nil {
		if (*m).ProtoReflect().IsValid() {
			s.Group(name, func(s *State) { s.saveProto(*m) })
		}
		return
	}
	*m = none
	s.Group(name, func(s *State) {
		head := s.restoreProto()
		known, ok := head.(M)
		if head != nil && !ok {
			s.Fail(fmt.Errorf("%w: a %T is no %T", ErrForeign, head, none))
		}
		*m = known
	})
}

func (s *State) saveProto(m proto.Message) {
	of := m.ProtoReflect().Descriptor().FullName()
	values, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	s.Fail(err)
	Text(s, "head", &of)
	s.Bytes("values", &values)
}

// restoreProto returns nil after a failure.
func (s *State) restoreProto() proto.Message {
	var of protoreflect.FullName
	var values []byte
	Text(s, "head", &of)
	s.Bytes("values", &values)
	known, err := protoregistry.GlobalTypes.FindMessageByName(of)
	if err != nil {
		s.Fail(fmt.Errorf("%w: this program has no message %s", ErrForeign, of))
		return nil
	}
	m := known.New().Interface()
	s.Fail(proto.Unmarshal(values, m))
	return m
}

package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Message decodes a message of the protobuf type of a name, which must be linked into this program.
func Message(name string, b []byte) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("wire: message type %.100q is not known here", name)
	}
	m := kind.New().Interface()
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("wire: decode %s: %w", name, err)
	}
	return m, nil
}

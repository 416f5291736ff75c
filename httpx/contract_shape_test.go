package httpx_test

import (
	"strings"
	"sync/atomic"
)

// A shape is the fields that values of a schema may have, for finding documented fields that never occur.
type shape struct {
	members map[string]*property
	more    *shape   // of additional fields
	element *shape   // of a list
	parts   []*shape // referenced or combined schemas
}

// A property is a field of an object with its location in the document.
type property struct {
	at    string
	seen  atomic.Bool
	value *shape
}

// shape returns the shape of a schema, or nil if the node is none.
func (c *contract) shape(n node) *shape {
	own, ok := n.v.(map[string]any)
	if !ok {
		return nil
	}
	if s := c.shapes[n.at]; s != nil {
		return s
	}
	s := &shape{members: map[string]*property{}}
	c.shapes[n.at] = s
	for _, sub := range n.subschemas() {
		keyword, name, _ := strings.Cut(strings.TrimPrefix(sub.at, n.at+"/"), "/")
		switch keyword {
		case "properties":
			m := &property{at: sub.at, value: c.shape(sub.node)}
			s.members[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)] = m
			c.members = append(c.members, m)
		case "additionalProperties":
			s.more = c.shape(sub.node)
		case "items":
			s.element = c.shape(sub.node)
		case "allOf", "oneOf", "anyOf":
			s.parts = append(s.parts, c.shape(sub.node))
		}
	}
	if own["$ref"] != nil {
		s.parts = append(s.parts, c.shape(n.follow()))
	}
	return s
}

// see records the fields of a value.
func (s *shape) see(v any) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			m := s.members[name]
			if m == nil {
				s.more.see(value)
				continue
			}
			if !m.seen.Swap(true) {
				coverage.see("member " + m.at)
			}
			m.value.see(value)
		}
	case []any:
		for _, element := range v {
			s.element.see(element)
		}
	}
	for _, part := range s.parts {
		part.see(v)
	}
}

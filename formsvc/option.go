package formsvc

import (
	"errors"

	"github.com/go-json-experiment/json"
)

// A plainModule is a module without its methods.
type plainModule Module

// A moduleJSON is a module with its choices as the API has them: strings, or objects with a value and a label.
type moduleJSON struct {
	plainModule `json:",inline"`

	Options []any `json:"options"`
}

// MarshalJSON implements json.Marshaler: a choice with a label is an object, as in the API.
func (m Module) MarshalJSON() ([]byte, error) {
	if len(m.Labels) == 0 {
		return json.Marshal(plainModule(m), json.Deterministic(true))
	}
	out := moduleJSON{plainModule(m), make([]any, len(m.Options))}
	for i, value := range m.Options {
		out.Options[i] = value
		if label, ok := m.Labels[value]; ok {
			out.Options[i] = map[string]string{"value": value, "label": label}
		}
	}
	out.Labels = nil
	return json.Marshal(out, json.Deterministic(true))
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Module) UnmarshalJSON(text []byte) error {
	var in moduleJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*m = Module(in.plainModule)
	m.Options = nil
	for _, option := range in.Options {
		value, plain := option.(string)
		object, _ := option.(map[string]any)
		label, labelled := object["label"].(string)
		if !plain {
			if value, plain = object["value"].(string); !plain {
				return errors.New("an option must be a string, or an object with value and label")
			}
		}
		m.Options = append(m.Options, value)
		if labelled && m.Labels == nil {
			m.Labels = map[string]string{}
		}
		if labelled {
			m.Labels[value] = label
		}
	}
	return nil
}

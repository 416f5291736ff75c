package formsvc

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// A Format is a kind of answer of the host's own ([Options].Formats), such as an IBAN. Whatever doesn't know it treats the
// module by its type.
type Format struct {
	Label string     // for owners of forms
	Type  ModuleType // of the modules that may have it: any with answers. Defaults to TextModule
	// Check returns an error unless a value has the format. Its text is the detail of a fault with the code "invalid_" and the
	// format's name, such as "must be an IBAN". It is called concurrently, and not for "". Defaults to taking all values.
	Check func(value string) error
}

var formatName = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

func (o *Options) checkFormats() error {
	for name, f := range o.Formats {
		if !formatName.MatchString(name) {
			return fmt.Errorf("format %q: the name must have 1 to 40 lower-case letters, digits, - and _", name)
		}
		if !slices.Contains(ModuleTypes(), f.moduleType()) || !f.moduleType().Answered() {
			return fmt.Errorf("format %q: unknown type %q", name, f.Type)
		}
	}
	return nil
}

func (o *Options) checkWorkflows() error {
	for name, w := range o.Workflows {
		if !visible(name) || CheckText(name) != nil || w == nil {
			return errors.New("each workflow must have a name")
		}
		if err := w.Check(); err != nil {
			return fmt.Errorf("workflow %q: %w", name, err)
		}
	}
	return nil
}

// Formats returns those of [Options].Formats. Don't change them.
func (c Campaigns) Formats() map[string]Format { return c.s.Formats }

func (f *Format) moduleType() ModuleType { return cmp.Or(f.Type, TextModule) }

// check is [Module.Check], and checks the format. It compiles each pattern once.
func (e *ValidationError) check(m *Module, value string) (code, detail string) {
	code, detail = m.checkType(value)
	if code == "" {
		code, detail = e.matches(m, value)
	}
	if code != "" || m.Format == "" || value == "" || e.host == nil {
		return code, detail
	}
	if f := e.host.Formats[m.Format]; f.Check != nil {
		if err := f.Check(value); err != nil {
			return "invalid_" + m.Format, err.Error()
		}
	}
	return "", ""
}

// checkFormat notes what is wrong with the format and the default of a module, which has a valid type.
func (e *ValidationError) checkFormat(pointer string, m *Module) {
	if m.Format != "" && e.host != nil {
		if f, known := e.host.Formats[m.Format]; !known {
			e.add(pointer+"/format", "unknown_value", "must be the name of a format of this service")
		} else if f.moduleType() != m.Type {
			e.add(pointer+"/format", "not_applicable", "applies to %s only", f.moduleType())
		}
	}
	switch {
	case len(m.Default) > 0 && (!m.Type.Answered() || m.Type == ConsentModule):
		e.add(pointer+"/default", "not_applicable", "doesn't apply to file, consent and section")
		return
	case len(m.Default) > 1 && !m.Multiple, len(m.Default) > maxEquals:
		e.add(pointer+"/default", "too_many", "must have as many values as an answer may have, and at most %d", maxEquals)
		return
	}
	own := 0
	for n, value := range m.Default {
		if m.owns(value) {
			own++
		}
		at := fmt.Sprintf("%s/default/%d", pointer, n)
		e.checkLine(at, value, maxHelp)
		if code, detail := e.check(m, value); code != "" {
			e.add(at, code, "%s", detail)
		} else if own > 1 {
			e.add(at, "too_many", "is a second value that isn't an option")
		}
	}
}

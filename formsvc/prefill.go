package formsvc

import (
	"fmt"
	"slices"
)

// Prefills reports whether the address of a form may fill in the question: consent, files and sections can't be.
func (m *Module) Prefills() bool {
	return m.Type != ConsentModule && m.Type != FileModule && m.Type != "section"
}

// checkPrefill notes the faults of [Form].Prefill.
func (e *ValidationError) checkPrefill(in *CampaignInput) {
	for i, name := range in.Form.Prefill {
		pointer := fmt.Sprintf("/form/prefill/%d", i)
		m := slices.IndexFunc(in.Modules, func(m Module) bool { return m.Name == name })
		switch {
		case slices.Contains(in.Form.Prefill[:i], name):
			e.add(pointer, "duplicate", "must be there once only")
		case m >= 0 && !in.Modules[m].Prefills():
			e.add(pointer, "not_applicable", "must not be the name of a consent, file or section")
		case m < 0 && !slices.Contains(userFields, name):
			e.add(pointer, "unknown_module", "is not a module of this campaign, and not email, firstName or lastName")
		}
		if len(e.Fields) == maxFaults {
			return
		}
	}
}

// userFields are the names of the user's fields in a form.
//
//nolint:gochecknoglobals // immutable
var userFields = []string{"email", "firstName", "lastName"}

// checkHidden notes what a question that is never shown can't have.
func (e *ValidationError) checkHidden(pointer string, m *Module) {
	switch {
	case !m.Hidden:
	case m.Type != TextModule && m.Type != ChoiceModule:
		e.add(pointer+"/hidden", "not_applicable", "applies to text and choice only")
	case slices.Contains(userFields, m.Name):
		e.add(pointer+"/hidden", "not_applicable", "doesn't apply to the user's fields")
	case m.Required:
		e.add(pointer+"/required", "not_applicable", "doesn't apply to a hidden question")
	case m.ShowIf != nil:
		e.add(pointer+"/showIf", "not_applicable", "doesn't apply to a hidden question")
	}
}

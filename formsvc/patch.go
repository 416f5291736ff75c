package formsvc

import "slices"

// mergeContent applies the user and answers of a patch to r (RFC 7396) and returns JSON Pointers to
// what changed, in the order of the patch. Faults of the result are noted in v; the error is for
// other failures.
func mergeContent(v *ValidationError, campaign *Campaign, r *Response, patch *ResponsePatch) ([]string, error) {
	var changes []string
	set := func(pointer string, field *string, value *string) {
		if value != nil && *field != *value {
			*field = *value
			changes = append(changes, pointer)
		}
	}
	set("/user/email", &r.User.Email, patch.Email)
	set("/user/firstName", &r.User.FirstName, patch.FirstName)
	set("/user/lastName", &r.User.LastName, patch.LastName)
	if patch.Email != nil && r.User.Email == "" && !campaign.EmailOptional {
		v.require("/user/email")
	}
	v.checkUser("/user", &r.User)
	if len(patch.Answers) == 0 {
		return changes, nil
	}
	v.checkDistinct(patch.Answers)
	answers, err := r.Answers.List()
	if err != nil {
		return nil, err
	}
	answers, changed := mergeAnswers(answers, patch.Answers)
	v.checkNames(answers)
	if len(changed) > 0 {
		v.checkAnswers(campaign.Modules, answers)
	}
	before := len(r.Answers.text)
	r.Answers = NewAnswers(answers...)
	if len(r.Answers.text) > before { // one that was stored before there was a limit may get smaller
		v.checkSize(r.Answers)
	}
	return append(changes, changed...), nil
}

// checkDistinct notes modules that a patch names twice, which a JSON object can't: the second could
// revert the first.
func (e *ValidationError) checkDistinct(patches []AnswerPatch) {
	seen := make(map[string]bool, len(patches))
	for i := range patches {
		if name := patches[i].Name; seen[name] && !badName(name) {
			e.add("/responses/"+pointerEscape(name), "duplicate", "is changed twice")
		} else {
			seen[name] = true
		}
	}
}

func mergeAnswers(answers []Answer, patches []AnswerPatch) (merged []Answer, changed []string) {
	for _, p := range patches {
		i := slices.IndexFunc(answers, func(a Answer) bool { return a.Name == p.Name })
		switch {
		case p.Remove && i < 0:
			continue
		case p.Remove:
			answers = slices.Delete(answers, i, i+1)
		case i < 0:
			answers = append(answers, p.Answer)
		case slices.Equal(answers[i].Value, p.Value):
			continue
		default:
			answers[i].Value = p.Value
		}
		changed = append(changed, "/responses/"+pointerEscape(p.Name))
	}
	return answers, changed
}

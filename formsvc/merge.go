package formsvc

import "slices"

// mergeContent applies the user and answers of a patch to r (RFC 7396) and
// returns JSON Pointers to what changed, in the order of the patch.
func mergeContent(campaign *Campaign, r *Response, patch *ResponsePatch) ([]string, error) {
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
	var v ValidationError
	v.checkUser(&r.User)
	if len(patch.Answers) == 0 {
		return changes, v.err()
	}
	answers, err := r.Answers.List()
	if err != nil {
		return nil, err
	}
	answers, changed := mergeAnswers(answers, patch.Answers)
	v.checkNames(answers)
	if len(changed) > 0 {
		v.checkAnswers(campaign.Modules, answers)
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	r.Answers = NewAnswers(answers...)
	return append(changes, changed...), nil
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

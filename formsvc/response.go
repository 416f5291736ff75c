package formsvc

import (
	"maps"
	"slices"
	"time"
)

// A Response is what one person submitted to a campaign. Its user and status can change at any time, even after the
// campaign was closed or its modules changed. Its answers can change to what the modules allow at that time.
type Response struct {
	ID          ID
	AccountID   ID
	CampaignID  ID
	Reference   string     // human-readable, unique in the account
	Status      string     // see [Workflow]
	Held        HoldReason // see [ResponseInput].Held; NotHeld once the status has changed
	User        User
	Answers     Answers
	Metadata    Metadata // see [ResponseInput].Metadata
	Version     int64    // 1 for a new response, one more with every change
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time // when it entered a final status; zero if its status isn't final
}

// A HoldReason says why a response is held: one of the constants, or a host's own word of at most 64 characters.
type HoldReason string

// The reasons for holding a response.
const (
	NotHeld    HoldReason = ""
	HeldTrap   HoldReason = "trap"   // a field that people don't see was filled in
	HeldQuick  HoldReason = "quick"  // the form was sent too soon after it was shown
	HeldJudged HoldReason = "judged" // the host's judge called it spam
)

// A User is the person who submitted a response.
type User struct {
	Email     string `json:"email"`     // required, unless the campaign says otherwise; "" if there is none
	FirstName string `json:"firstName"` // at most 200 characters
	LastName  string `json:"lastName"`  // at most 200 characters
}

// ResponseInput is what a new response needs.
type ResponseInput struct {
	User     User
	Answers  []Answer
	Metadata map[string]string // at most 50 names of up to 200 characters, values of up to 2,000; not shown to visitors
	// Held keeps the response back: its status is "spam", whatever the workflow, and neither it nor its files and
	// signatures raise events. When its status changes, that raises "response.created", "file.uploaded" for each file, and
	// "response.completed" if the new status is final. Defaults to a response that raises events at once.
	Held HoldReason
	// FormToken makes Create fail with [ErrNotFound] unless the campaign's form is enabled and has this token at that
	// time, and refuses addresses whose domain has no dot. Defaults to any campaign and address.
	FormToken string

	changed bool // whether a campaign had other answers for the response, see [Module.Canonical]
}

// response returns the new response that the input asks for, without its identifier, reference and times.
func (in *ResponseInput) response(key CampaignKey, answers Answers) Response {
	r := Response{
		AccountID: key.AccountID, CampaignID: key.ID, Status: StatusPending, Held: in.Held,
		User: in.User, Answers: answers, Metadata: NewMetadata(in.Metadata), Version: 1,
	}
	if in.Held != NotHeld {
		r.Status = StatusSpam
	}
	return r
}

// A ResponsePatch says what to change in a response. Nil fields stay unchanged.
type ResponsePatch struct {
	Status    *string
	Email     *string
	FirstName *string
	LastName  *string
	Answers   []AnswerPatch      // in order, each module once; other answers stay
	Metadata  map[string]*string // nil removes a name; other names stay
	IfVersion int64              // fail with ErrStale unless the response has this version; 0 means any version
}

// An AnswerPatch sets the values of one module, or removes the answer.
type AnswerPatch struct {
	Answer
	Remove bool
}

// ResponseKey names one response of one campaign of one account.
type ResponseKey struct{ AccountID, CampaignID, ID ID }

// Key names the response.
func (r *Response) Key() ResponseKey {
	return ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
}

// ResponseFilter chooses responses of a campaign. Zero fields match every response.
type ResponseFilter struct {
	Status        []string          // any of these
	NotStatus     string            // not this one
	Email         string            // exactly this address
	AnyCase       bool              // compare addresses as [FoldEmail] returns them
	Reference     string            // exactly this reference
	CreatedAfter  time.Time         // created later than this
	CreatedBefore time.Time         // created earlier than this
	UpdatedAfter  time.Time         // changed later than this
	Metadata      map[string]string // these values under these names; the cost grows with the number of responses
}

// IsZero reports whether the filter matches every response.
func (f *ResponseFilter) IsZero() bool {
	return len(f.Status) == 0 && f.NotStatus == "" && f.Email == "" && f.Reference == "" &&
		f.CreatedAfter.IsZero() && f.CreatedBefore.IsZero() && f.UpdatedAfter.IsZero() && len(f.Metadata) == 0
}

// Texts returns every text of the filter, for stores that check them ([CheckText]).
func (f *ResponseFilter) Texts() []string {
	list := append([]string{f.NotStatus, f.Email, f.Reference}, f.Status...)
	return slices.AppendSeq(slices.AppendSeq(list, maps.Keys(f.Metadata)), maps.Values(f.Metadata))
}

// Match reports whether the filter matches the response. Stores that filter by query must agree with it.
func (f *ResponseFilter) Match(r *Response) bool {
	for name, value := range f.Metadata {
		if got, ok := r.Metadata.Map()[name]; !ok || got != value {
			return false
		}
	}
	return (len(f.Status) == 0 || slices.Contains(f.Status, r.Status)) && (f.NotStatus == "" || f.NotStatus != r.Status) &&
		(f.Email == "" || f.Email == r.User.Email || f.AnyCase && FoldEmail(f.Email) == FoldEmail(r.User.Email)) &&
		(f.Reference == "" || f.Reference == r.Reference) &&
		(f.CreatedAfter.IsZero() || r.CreatedAt.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore)) &&
		(f.UpdatedAfter.IsZero() || r.UpdatedAt.After(f.UpdatedAfter))
}

// ResponseQuery chooses responses of one campaign.
type ResponseQuery struct {
	AccountID  ID
	CampaignID ID
	Filter     ResponseFilter
	Page       PageQuery
	NoTotal    bool // don't count: Total is 0; for reading page after page
}

// Size returns the approximate size of the response in memory, in bytes.
func (r *Response) Size() int {
	const fixed = 320 // the struct, and identifiers
	return fixed + len(r.Reference) + len(r.Status) + len(r.User.Email) + len(r.User.FirstName) + len(r.User.LastName) +
		len(r.Answers.text) + len(r.Metadata)
}

// The largest lengths of a first or last name and of a reason, in characters.
const (
	maxName = 200
	maxHeld = 64
)

// checkInput notes the faults that an input has whatever the campaign.
func (s Responses) checkInput(in *ResponseInput) (ValidationError, Answers) {
	v, answers := s.s.faults(), NewAnswers(in.Answers...)
	v.checkUser("/user", &in.User)
	v.checkLine("/held", string(in.Held), maxHeld)
	v.checkNames(in.Answers)
	v.checkSize(answers)
	v.checkMetadata(in.Metadata, maxMetadata)
	return v, answers
}

// require notes that a field has no value.
func (e *ValidationError) require(pointer string) { e.add(pointer, "required", "is required") }

// requireUser notes what the campaign needs of a person and u lacks. Only fields that were sent are looked at.
func (e *ValidationError) requireUser(c *Campaign, u *User, email, first, last bool) {
	if email && u.Email == "" && !c.EmailOptional {
		e.require("/user/email")
	}
	if first && !visible(u.FirstName) && c.RequireName {
		e.require("/user/firstName")
	}
	if last && !visible(u.LastName) && c.RequireName {
		e.require("/user/lastName")
	}
}

// checkUser notes the faults of a person, but not what is missing; pointer is the position in the input.
func (e *ValidationError) checkUser(pointer string, u *User) {
	if u.Email != "" && !validEmail(u.Email) {
		e.add(pointer+"/email", "invalid_email", "must be an e-mail address")
	}
	e.checkLine(pointer+"/firstName", u.FirstName, maxName)
	e.checkLine(pointer+"/lastName", u.LastName, maxName)
}

func (e *ValidationError) checkStatus(w *Workflow, status string) {
	if !isStatus(status) {
		e.add("/status", "invalid_value", "%s", statusRule)
	} else if !w.knows(status) {
		e.add("/status", "unknown_status", "is not a status of this service")
	}
}

// mergeContent applies the content of a patch to r (RFC 7396) and returns JSON Pointers to what changed, in the order of
// the patch, those of metadata sorted. Faults of the result are noted in v; the error is for other failures.
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
	v.requireUser(campaign, &r.User, patch.Email != nil, patch.FirstName != nil, patch.LastName != nil)
	v.checkUser("/user", &r.User)
	changes = append(changes, mergeMetadata(v, r, patch.Metadata)...)
	if len(patch.Answers) == 0 {
		return changes, nil
	}
	v.checkDistinct(patch.Answers)
	answers, err := r.Answers.List()
	if err != nil {
		return nil, err
	}
	patches := slices.Clone(patch.Answers)
	for i := range patches {
		patches[i].Value = campaign.canonical([]Answer{patches[i].Answer})[0].Value
	}
	answers, changed := mergeAnswers(answers, patches)
	v.checkNames(answers)
	if len(changed) > 0 {
		answers = v.checkAnswers(&campaign.CampaignInput, answers)
	}
	r.Answers = NewAnswers(answers...)
	v.checkSize(r.Answers)
	return append(changes, changed...), nil
}

// checkDistinct notes modules that a patch names twice, which a JSON object can't: the second could revert the first.
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

// AppendJSON appends the response as the JSON object that clients get and webhooks carry: the fields of the
// specification, then those that this service adds (campaignUuid, updatedAt, completedAt, metadata).
func (r *Response) AppendJSON(b []byte) []byte {
	return appendResponse(b, r, true)
}

// appendResponse appends the response, without the answers if answers is false.
func appendResponse(b []byte, r *Response, answers bool) []byte {
	b = appendText(b, `{"uuid":`, string(r.ID))
	b = appendText(b, `,"reference":`, r.Reference)
	b = appendText(b, `,"status":`, r.Status)
	b = appendUser(b, `,"user":`, &r.User)
	if answers {
		b = append(b, `,"responses":`...)
		b = append(b, r.Answers.JSON()...)
	}
	b = appendTime(b, `,"createdAt":`, r.CreatedAt)
	b = appendText(b, `,"campaignUuid":`, string(r.CampaignID))
	b = appendTime(b, `,"updatedAt":`, r.UpdatedAt)
	b = appendTime(b, `,"completedAt":`, r.CompletedAt)
	b = append(append(b, `,"metadata":`...), r.Metadata.JSON()...)
	return append(b, '}')
}

func appendUser(b []byte, name string, u *User) []byte {
	b = append(b, name...)
	b = appendText(b, `{"email":`, u.Email)
	b = appendText(b, `,"firstName":`, u.FirstName)
	b = appendText(b, `,"lastName":`, u.LastName)
	return append(b, '}')
}

package intake

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

const (
	pairsAtMost  = 5_000                  // fields of one form
	maxText      = formsvc.MaxAnswersSize // bytes of a form without its files
	smallBody    = 16 << 10               // larger bodies take a place
	minFill      = 2 * time.Second        // people need longer to fill in a page
	maxPageToken = 100
	maxToken     = 64 // characters of a form's token; longer ones are unknown
)

var (
	errBusy    = errors.New("too many requests at once")
	errMany    = errors.New("too many forms from one address")
	errMedia   = errors.New("not a form")
	errBody    = errors.New("the body can't be read")
	errOrigin  = errors.New("a script of another origin")
	errMethod  = errors.New("a method that forms don't take")
	errTooMuch = errors.New("too large")
	errFile    = errors.New("a file of a form can't be stored")
)

// sent is what a visitor sent.
type sent struct {
	names     []string            // of the fields of a form, in their order
	form      map[string][]string // their values; empty for JSON
	fields    int                 // how many were sent
	fieldName func(sent string) string
	files     []file
	spooled   spool // the bytes of the files
	input     formsvc.ResponseInput
	page      string // the text against sending twice; "" for none
	shown     bool   // whether page is from a page of ours, with its time
	trapped   bool   // whether the field for bots is filled
}

// newPage returns the field _page of a page that is shown at that time.
func newPage(now time.Time) string { return strconv.FormatInt(now.UnixMilli(), 36) + "." + rand.Text() }

// tooQuick reports whether our own page came back within minFill.
func (s *sent) tooQuick(now time.Time) bool {
	text, _, ours := strings.Cut(s.page, ".")
	at, err := strconv.ParseInt(text, 36, 64)
	return s.shown && ours && err == nil && now.Sub(time.UnixMilli(at)) < minFill
}

// key returns an idempotency key for what was sent, or for one of its files, under its page.
func (s *sent) key(c *formsvc.Campaign, parts ...string) *formsvc.Idempotency {
	text, _ := json.Marshal(append([]string{string(c.ID), s.page, s.input.User.Email, s.input.User.FirstName, s.input.User.LastName,
		formsvc.NewAnswers(s.input.Answers...).JSON()}, parts...), jsontext.AllowInvalidUTF8(true))
	sum := sha256.Sum256(text)
	return &formsvc.Idempotency{Key: "form:" + hex.EncodeToString(sum[:]), Request: sum}
}

// read reads the body. The caller must close the result, also after an error.
func (v *visit) read() (*sent, error) {
	s := &sent{form: make(map[string][]string), fieldName: v.fieldName}
	mediaType, parameters, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || v.r.Header.Get("Content-Encoding") != "" {
		return s, errMedia
	}
	if mediaType == "multipart/form-data" {
		return s, s.readParts(v.r.Body, parameters["boundary"], v.h.svc.Files.Limit())
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxText))
	switch {
	case err != nil:
		return s, bodyError(err)
	case mediaType == "application/json":
		s.page = v.r.Header.Get("Idempotency-Key")
		return s, s.readJSON(body)
	case mediaType == "application/x-www-form-urlencoded":
		return s, s.readPairs(string(body))
	}
	return s, errMedia
}

// bodyError returns the error for a body that broke off or is too large, or nil for nil.
func bodyError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooMuch
	}
	return errors.Join(errBody, err)
}

// readPairs reads a url-encoded form.
func (s *sent) readPairs(body string) error {
	for text := range strings.SplitSeq(body, "&") {
		name, value, _ := strings.Cut(text, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if errName != nil || errValue != nil {
			return errBody
		}
		if err := s.add(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *sent) add(name, value string) error {
	if s.fields++; s.fields > pairsAtMost {
		return errTooMuch
	}
	name = s.fieldName(name)
	if s.form[name] == nil {
		s.names = append(s.names, name)
	}
	s.form[name] = append(s.form[name], value)
	return nil
}

// readJSON reads {"user": {…}, "responses": {…}}.
func (s *sent) readJSON(body []byte) error {
	var in struct {
		User struct {
			Email     string `json:"email"`
			FirstName string `json:"firstName"`
			LastName  string `json:"lastName"`
		} `json:"user"`
		Responses answers `json:"responses"`
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		return errors.Join(errBody, err)
	}
	s.input = formsvc.ResponseInput{User: formsvc.User(in.User), Answers: in.Responses}
	return nil
}

// answers are the answers of a JSON body, in their order.
type answers []formsvc.Answer

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (a *answers) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return errors.Join(errBody, err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		answer := formsvc.Answer{Name: name.String()}
		var in struct {
			Value []string `json:"value"`
		}
		if err := json.UnmarshalDecode(dec, &in, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		if in.Value == nil {
			return errBody
		}
		answer.Value = in.Value
		*a = append(*a, answer)
	}
	_, err := dec.ReadToken()
	return err
}

// interpret turns the fields of a form into the input for the campaign. Empty fields are no answer. Unknown ones remain
// as answers, so that the service names them.
func (s *sent) interpret(c *formsvc.Campaign) {
	modules := make(map[string]*formsvc.Module, len(c.Modules))
	for i := range c.Modules {
		modules[c.Modules[i].Name] = &c.Modules[i]
	}
	user := &s.input.User
	users := map[string]*string{"email": &user.Email, "firstName": &user.FirstName, "lastName": &user.LastName}
	for _, name := range s.names {
		m := modules[name]
		switch {
		case name == "_page":
			if text := s.form[name][0]; s.page == "" && len(text) <= maxPageToken {
				s.page, s.shown = text, true
			}
			continue
		case name == "_honeypot":
			s.trapped = strings.Join(s.form[name], "") != ""
			continue
		case name == "", m == nil && name[0] == '_':
			continue
		}
		var values []string
		for _, value := range s.form[name] {
			if value = clean(m, value); value != "" {
				values = append(values, value)
			}
		}
		if to := users[name]; to != nil && len(values) > 0 {
			*to = strings.TrimSpace(values[0])
		}
		if len(values) > 0 && (m != nil || users[name] == nil) {
			s.input.Answers = append(s.input.Answers, formsvc.Answer{Name: name, Value: values})
		}
	}
	hidden := c.Hidden(s.input.Answers)
	s.input.Answers = slices.DeleteFunc(s.input.Answers, func(a formsvc.Answer) bool { return isUser(a.Name) && hidden[a.Name] })
}

// clean returns a value as the module takes it, or "" if it is blank. m is nil for an unknown module.
func clean(m *formsvc.Module, value string) string {
	trimmed := strings.TrimSpace(value)
	if trimmed == "" {
		return ""
	}
	if m != nil {
		switch m.Type {
		case formsvc.EmailModule, formsvc.URLModule, formsvc.NumberModule, formsvc.DateModule:
			return trimmed
		case formsvc.BooleanModule:
			if value == "on" { // a checkbox without a value
				return "true"
			}
		}
	}
	return strings.ReplaceAll(value, "\r\n", "\n") // as browsers count characters
}

// pointerTo returns the JSON Pointer of a module.
func pointerTo(name string) string { return string(jsontext.Pointer("/responses").AppendToken(name)) }

// check returns a *[formsvc.ValidationError] with all faults of what was sent, or [formsvc.ErrCampaignClosed].
func (v *visit) check(s *sent) error {
	err := v.h.svc.Responses.Check(v.campaign, s.input)
	all := &formsvc.ValidationError{}
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		all = invalid
	} else if err != nil {
		return err
	}
	for i := range all.Fields {
		if f := &all.Fields[i]; f.Code == "not_applicable" { // only a file module has no answers
			f.Code, f.Detail = "file_lost", "is a file, and must be sent as multipart/form-data"
		}
	}
	if s.checkFiles(v.campaign, all); len(all.Fields) > 0 {
		return all
	}
	return nil
}

// checkFiles adds the faults of the files.
func (s *sent) checkFiles(c *formsvc.Campaign, all *formsvc.ValidationError) {
	add := func(name, code, detail string) {
		all.Fields = append(all.Fields, formsvc.FieldError{Pointer: pointerTo(name), Code: code, Detail: detail})
	}
	count := make(map[string]int)
	for _, f := range s.files {
		if count[f.module]++; f.tooLarge {
			add(f.module, "file_too_large", "has more bytes than a file may have")
		}
		if !slices.ContainsFunc(c.Modules, func(m formsvc.Module) bool { return m.Name == f.module }) && len(c.Modules) > 0 {
			add(f.module, "unknown_module", "is not a module of this campaign")
		}
	}
	hidden := c.Hidden(s.input.Answers)
	for i := range c.Modules {
		m := &c.Modules[i]
		switch n := count[m.Name]; {
		case m.Type != formsvc.FileModule && n > 0:
			add(m.Name, "no_file", "takes no file")
		case m.Type != formsvc.FileModule:
		case n > 0 && hidden[m.Name]:
			add(m.Name, "hidden", "must have no file: other answers hide the question")
		case n > 1 && !m.Multiple:
			add(m.Name, "too_many", "takes one file only")
		case n == 0 && m.Required && !hidden[m.Name]:
			add(m.Name, "required", "is required")
		}
	}
}

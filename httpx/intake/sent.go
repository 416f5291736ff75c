package intake

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

const (
	pairsAtMost  = 5_000                  // fields of one form
	namesAtMost  = 50                     // of answers to a campaign without questions
	maxText      = formsvc.MaxAnswersSize // bytes of a form without its files
	smallBody    = 16 << 10               // larger bodies take a place
	minFill      = 2 * time.Second        // people need longer to fill in a page
	maxPageToken = 100
	maxToken     = 64 // characters of a form's token; longer ones are unknown
)

// sent is what a visitor sent.
type sent struct {
	modules map[string]*formsvc.Module // of the campaign
	aliases map[string]string          // what browsers make of a module's name with quotes or line ends; nil until it is needed
	names   []string                   // of the fields of a form, in their order
	form    map[string][]string        // their values; empty for JSON
	fields  int                        // how many were sent
	partial bool                       // whether not everything was read
	lost    error                      // why files weren't kept, or nil
	stray   int64                      // bytes of files that no question takes, which may still be skipped
	files   []file
	spooled spool // the bytes of the files
	body    *body
	json    wire.Body // of a script
	text    string    // the answers of input, once they are encoded
	input   formsvc.ResponseInput
	faults  wire.Faults          // that the service doesn't find
	reads   map[string][2]string // of an ambiguous number or date: how it can be read
	page    string               // the text against sending twice; "" for none
	resumed string               // the key of a response that isn't complete; "" for none
	shown   bool                 // whether page is from a page of ours, with its time
	trapped bool                 // whether the field for bots is filled
}

// newPage returns the field _page of a page that is shown at that time.
func newPage(now time.Time) string { return strconv.FormatInt(now.UnixMilli(), 36) + "." + rand.Text() }

// setPage takes the field _page. Its third part names a response whose files are missing.
func (s *sent) setPage(text string) {
	if s.page != "" || len(text) > maxPageToken {
		return
	}
	s.page, s.shown = text, true
	if i := strings.LastIndexByte(text, '.'); strings.Count(text, ".") == 2 && resumable.MatchString(text[i+1:]) {
		s.page, s.resumed = text[:i], text[i+1:]
	}
}

// resumable is the end of a key.
var resumable = regexp.MustCompile(`^[0-9a-f]{32}$`)

// opened returns when our own page was shown, in milliseconds since 1970; or 0 for another text.
func (s *sent) opened() int64 {
	text, _, ours := strings.Cut(s.page, ".")
	at, err := strconv.ParseInt(text, 36, 64)
	if !ours || err != nil {
		return 0
	}
	return at
}

// tooQuick reports whether our own page came back within minFill. A page from the future comes from a node whose clock is ahead.
func (s *sent) tooQuick(now time.Time) bool {
	took := now.Sub(time.UnixMilli(s.opened()))
	return s.shown && took >= 0 && took < minFill
}

// key returns an idempotency key for what was sent, or for one of its files, under its page. The request is the same for other files.
func (s *sent) key(c *formsvc.Campaign, parts ...string) *formsvc.Idempotency {
	hash := func(parts ...string) [sha256.Size]byte {
		var text []byte
		for _, part := range parts { // each after its length, so that no two lists are the same text
			text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
		}
		return sha256.Sum256(text)
	}
	request := hash(string(c.ID), s.page, s.input.User.Email, s.input.User.FirstName, s.input.User.LastName, s.answers())
	if parts == nil {
		for i := range s.files {
			f := &s.files[i]
			parts = append(parts, f.module, f.name, f.contentType, string(f.sum[:]))
		}
	}
	sum := hash(append(parts, string(request[:]))...)
	return &formsvc.Idempotency{Key: s.named(hex.EncodeToString(sum[:16])), Request: request}
}

// named returns the key with that end. It begins with the time of the page, for the order of the stores' index.
func (s *sent) named(end string) string {
	return fmt.Sprintf("%08x-form:%s", uint32(s.opened()>>16), end) //nolint:gosec // cut off
}

// answers returns the answers as JSON. They don't change any more.
func (s *sent) answers() string {
	if s.text == "" {
		s.text = formsvc.NewAnswers(s.input.Answers...).JSON()
	}
	return s.text
}

// read reads the body.
func (v *visit) read(body *body) error {
	s := &sent{
		form: make(map[string][]string, len(v.campaign.Modules)+5), modules: make(map[string]*formsvc.Module, len(v.campaign.Modules)),
		reads: make(map[string][2]string), partial: true, stray: strayBytes, body: body,
	}
	for i := range v.campaign.Modules {
		s.modules[v.campaign.Modules[i].Name] = &v.campaign.Modules[i]
	}
	v.sent = s
	mediaType, parameters, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || v.r.Header.Get("Content-Encoding") != "" {
		return errMedia
	}
	switch mediaType {
	case "multipart/form-data":
		s.spooled.pool, s.spooled.address = v.h.spooled, v.address
		err = s.readParts(body, parameters["boundary"], v.h.svc.Files.Limit())
	case "application/json", "application/x-www-form-urlencoded":
		var text []byte
		if text, err = body.text(v.r.ContentLength); err != nil {
			return bodyError(err)
		}
		if mediaType == "application/json" {
			err = s.readJSON(text)
		} else {
			err = s.readPairs(text)
		}
	default:
		return errMedia
	}
	if v.script && s.page == "" {
		s.page = v.r.Header.Get("Idempotency-Key")
	}
	return err
}

// bodyError returns the error for a body that broke off or is too large, or nil for nil.
func bodyError(err error) error {
	_, own := errors.AsType[*wire.Problem](err)
	whole, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil, own, errors.Is(err, formsvc.ErrInvalid):
		return err
	case tooLarge:
		return &limitError{"large", byteCount(whole.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return wire.Unreadable(err)
	}
	return errors.Join(errBody, err)
}

// readPairs reads a url-encoded form. Of one that is too large, it reads the fields that fit.
func (s *sent) readPairs(body []byte) error {
	var over error
	if len(body) > maxText {
		body = body[:max(bytes.LastIndexByte(body, '&'), 0)]
		over = &limitError{"largeText", byteCount(maxText)}
	}
	for text := range strings.SplitSeq(string(body), "&") {
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
	s.partial = over != nil
	return over
}

func (s *sent) add(name, value string) error {
	if s.fields++; s.fields > pairsAtMost {
		return &limitError{"largeFields", pairsAtMost}
	}
	name = s.known(name)
	values := s.form[name]
	if values == nil {
		s.names = append(s.names, name)
	}
	s.form[name] = append(values, value)
	return nil
}

// known returns the name of the module that a browser means.
func (s *sent) known(name string) string {
	if s.modules[name] != nil || !strings.ContainsAny(name, "%\n") {
		return name
	}
	if s.aliases == nil {
		s.aliases = make(map[string]string)
		for name := range s.modules {
			lines := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(name)
			s.aliases[lines], s.aliases[strings.NewReplacer(`"`, "%22", "\r\n", "%0D%0A").Replace(lines)] = name, name
		}
	}
	return cmp.Or(s.aliases[name], name)
}

// readJSON reads {"user": {…}, "responses": {…}}.
func (s *sent) readJSON(body []byte) error {
	if len(body) > maxText {
		return &limitError{"largeText", byteCount(maxText)}
	}
	s.json.Raw = body
	in, err := s.json.ResponseInput(true)
	if err == nil {
		s.input, s.faults, s.partial = in, s.json.Noted, false
	}
	return err
}

// ours reports whether a field is one of the page's own, or to be ignored.
func (s *sent) ours(name string) bool {
	return s.modules[name] == nil && (name == "" || name[0] == '_')
}

// interpret turns the fields of a form into the input for the campaign. Empty fields are no answer. Unknown ones remain
// as answers, so that the service names them.
func (s *sent) interpret(c *formsvc.Campaign, t texts) {
	user := &s.input.User
	s.input.Answers = slices.Grow(s.input.Answers, len(s.names))
	for _, name := range s.names {
		m := s.modules[name]
		if s.ours(name) {
			switch name {
			case "_page":
				s.setPage(s.form[name][0])
			case "_honeypot":
				s.trapped = strings.Join(s.form[name], "") != ""
			}
			continue
		}
		var values []string
		for _, value := range s.form[name] {
			if value = s.clean(m, value, t); value != "" {
				values = append(values, value)
			}
		}
		to := userField(user, name)
		if to != nil && len(values) > 0 {
			*to = strings.TrimSpace(values[0])
			if m == nil && len(distinct(values)) > 1 {
				s.faults.Add("/user/"+name, "too_many", "takes one value only")
			}
		}
		if len(values) > 0 && (m != nil || to == nil) {
			s.input.Answers = append(s.input.Answers, formsvc.Answer{Name: name, Value: values})
		}
	}
	for i, a := range s.input.Answers {
		if m := s.modules[a.Name]; m != nil && m.Choices() != nil {
			s.input.Answers[i].Value = distinct(m.Canonical(a.Value))
		}
	}
	if len(c.Modules) == 0 && len(s.input.Answers) > namesAtMost {
		s.faults.Add("/responses", "too_many_names", fmt.Sprintf("must have at most %d members", namesAtMost))
	}
	hidden := c.Hidden(s.input.Answers)
	s.input.Answers = slices.DeleteFunc(s.input.Answers, func(a formsvc.Answer) bool { return isUser(a.Name) && hidden[a.Name] })
}

// distinct returns the values without those that came before.
func distinct(values []string) []string {
	if len(values) < 2 {
		return values
	}
	seen := make(map[string]bool, len(values))
	return slices.DeleteFunc(slices.Clone(values), func(s string) bool {
		before := seen[s]
		seen[s] = true
		return before
	})
}

// clean returns a value as the module takes it, or "" if it is blank. m is nil for an unknown module.
func (s *sent) clean(m *formsvc.Module, value string, t texts) string {
	trimmed := strings.TrimSpace(value)
	if trimmed == "" {
		return ""
	}
	if m != nil {
		if m.Pattern != "" && m.Type == formsvc.TextModule {
			return trimmed
		}
		switch m.Type {
		case formsvc.EmailModule, formsvc.URLModule, formsvc.PhoneModule, formsvc.RatingModule, formsvc.ScaleModule:
			return trimmed
		case formsvc.TimeModule:
			return readTime(trimmed)
		case formsvc.NumberModule, formsvc.DateModule:
			read := readNumber
			if m.Type == formsvc.DateModule {
				read = readDate
			}
			text, other := read(trimmed, t)
			if other != "" && !m.Integer {
				s.reads[m.Name] = [2]string{text, other}
				s.faults.Add(pointerTo(m.Name), "ambiguous", fmt.Sprintf("can be read as %s or as %s; send one of these", text, other))
			}
			return text
		case formsvc.BooleanModule, formsvc.ConsentModule:
			if value == "on" { // a checkbox without a value
				return "true"
			}
		}
	}
	return strings.ReplaceAll(value, "\r\n", "\n") // as browsers count characters
}

// pointerTo returns the JSON Pointer of a module.
func pointerTo(name string) string { return string(jsontext.Pointer("/responses").AppendToken(name)) }

// check returns a *[formsvc.ValidationError] with all faults of what was sent, or [formsvc.ErrCampaignClosed]. What only the rules
// can find is left to the service if the response is stored next: they are a tenth of the work.
func (v *visit) check(s *sent) error {
	all := &formsvc.ValidationError{Fields: s.faults}
	if s.checkFiles(v.campaign, all); len(all.Fields) == 0 && s.input.Held == formsvc.NotHeld && v.h.opts.Judge == nil {
		return nil
	}
	return v.faulty(s, v.h.svc.Responses.Check(v.r.Context(), v.campaign, s.input))
}

// faulty returns the error of the service with the faults that it doesn't find, if it is nil or about others.
func (v *visit) faulty(s *sent, err error) error {
	all, invalid := errors.AsType[*formsvc.ValidationError](s.json.WithoutPerson(err))
	if !invalid && err != nil {
		return err
	}
	all = cmp.Or(all, &formsvc.ValidationError{})
	all.Fields = slices.Concat(s.faults, all.Fields)
	for i := range all.Fields {
		if f := &all.Fields[i]; f.Code == "not_applicable" { // only a file module has no answers
			f.Code, f.Detail = "file_lost", "is a file, and must be sent as multipart/form-data"
		}
	}
	if s.checkFiles(v.campaign, all); len(all.Fields) == 0 {
		return nil
	}
	return cmp.Or[error](err, all)
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
		} else if m := s.modules[f.module]; !m.Accepts(f.name, f.contentType) {
			add(f.module, "file_type", "must be of one of these types: "+strings.Join(m.Accept, ", "))
		}
	}
	hidden := c.Hidden(s.input.Answers)
	for i := range c.Modules {
		m := &c.Modules[i]
		switch n := count[m.Name]; {
		case m.Type != formsvc.FileModule:
		case n > 0 && hidden[m.Name]:
			add(m.Name, "hidden", "must have no file: other answers hide the question")
		case n > 1 && !m.Multiple:
			add(m.Name, "too_many", "takes one file only")
		case n == 0 && m.Required && !hidden[m.Name]:
			add(m.Name, "required", "is required")
		case n == 0 && s.expects(m.Name) && !hidden[m.Name] && !slices.Contains(s.form["_without"], m.Name):
			add(m.Name, "file_again", "had a file that wasn't kept; send it again, or _without with the field's name")
		}
	}
}

// expects reports whether a question had a file when the form was sent, or before an error.
func (s *sent) expects(name string) bool {
	return slices.ContainsFunc(s.files, func(f file) bool { return f.module == name }) ||
		s.ours("_files") && slices.Contains(s.form["_files"], name)
}

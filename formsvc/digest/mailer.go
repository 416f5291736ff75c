package digest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Message is a mail.
type Message struct {
	To      string // an e-mail address
	ReplyTo string // an e-mail address, or ""
	Subject string // one line
	Text    string
	HTML    string // the same as Text; "" for none
	// Unsubscribe is a URL at which a POST request ends such mails (RFC 8058); "" for none.
	Unsubscribe string
	ID          string // the same for every attempt, for the left side of a Message-ID; "" for a random one
}

// A Sender sends mail. Send returns nil once the mail is accepted, and should take at most 15 seconds: after an error, or
// when the lease of a digest has ended, the mail is sent again. A refusal by a mail server should be a *[delivery.MailError].
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// A Mailer makes the mails of deliveries: an owner's notices and a form's confirmations, in the language of the form. Its method
// Mail is for [delivery.Options].Mail. It is safe for concurrent use.
type Mailer struct {
	svc    *formsvc.Service
	sender Sender
	opts   MailerOptions
	texts  map[string]map[string]string
}

// MailerOptions are optional settings of a [Mailer].
type MailerOptions struct {
	// FormsURL is the public address of the pages of package intake, such as https://forms.example.com/f. Defaults to none: then
	// nobody can confirm or unsubscribe, and such mails fail.
	FormsURL string
	// ConsoleURL is the address of the console, for links to responses. Defaults to none: no links.
	ConsoleURL string
	// Theme has the Product and MailFooter of mails. Defaults to none.
	Theme formsvc.Theme
}

var (
	//go:embed texts.json
	textsFile []byte
	//go:embed mail.html
	page string
	//nolint:gochecknoglobals // immutable
	layout = template.Must(template.New("mail").Parse(page))
)

// NewMailer returns a mailer. opts may be nil.
func NewMailer(svc *formsvc.Service, sender Sender, opts *MailerOptions) (*Mailer, error) {
	m := &Mailer{svc: svc, sender: sender, opts: *cmp.Or(opts, &MailerOptions{})}
	if err := json.Unmarshal(textsFile, &m.texts); err != nil {
		return nil, fmt.Errorf("digest: texts: %w", err)
	}
	return m, nil
}

// A payload is an event, or what a daily mail has.
type payload struct {
	webhook.Event

	Data struct {
		webhook.Data

		Campaigns []struct {
			webhook.Campaign

			Responses int `json:"responses"`
		} `json:"campaigns"` // of a daily mail
	} `json:"data"`
}

// A letter is a mail before it is written in text and HTML.
type letter struct {
	Language, Dir string
	Heading       string
	Paragraphs    []string
	Rows          []row
	Links         []link
	Small         []string // below all
}

type row struct{ Label, Value string }

type link struct{ Text, URL string }

// Mail sends the mail of a delivery. It fails with a *[delivery.MailError] if the mail may not be sent, or not now.
func (m *Mailer) Mail(ctx context.Context, d delivery.Mail) error {
	var p payload
	if err := json.Unmarshal(d.Body, &p); err != nil {
		return &delivery.MailError{Text: "the payload can't be read", Final: true}
	}
	account, form := formsvc.ID(d.Account), p.Data.Campaign.UUID
	if len(p.Data.Campaigns) > 0 {
		form = p.Data.Campaigns[0].UUID // whose language a daily mail has
	}
	campaign, err := m.svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: account, ID: formsvc.ID(form)})
	if err != nil && !errors.Is(err, formsvc.ErrNotFound) {
		return err
	}
	if d.To == "" {
		return m.confirm(ctx, &d, &p, &campaign)
	}
	hook, err := m.svc.Webhooks.Get(ctx, formsvc.WebhookKey{AccountID: account, ID: formsvc.ID(d.Endpoint)})
	switch {
	case errors.Is(err, formsvc.ErrNotFound):
		return &delivery.MailError{Text: "the notice was deleted", Final: true}
	case err != nil:
		return err
	case hook.Mail.ConfirmedAt.IsZero():
		return m.ask(ctx, &d, &hook)
	}
	return m.notify(ctx, &d, &p, &campaign, &hook)
}

// say returns a text in the language of a form.
func (m *Mailer) say(language, name string, args ...any) string {
	texts := m.texts[language]
	if texts == nil {
		texts = m.texts["en"]
	}
	return fmt.Sprintf(texts[name], args...)
}

// send completes a mail and sends it.
func (m *Mailer) send(ctx context.Context, msg Message, l *letter) error {
	var footer string
	if msg.Subject, footer = themed(&m.opts.Theme, msg.Subject); footer != "" {
		l.Small = append(l.Small, footer)
	}
	l.Dir = m.say(l.Language, "dir")
	msg.Text = l.text()
	var b strings.Builder
	if err := layout.Execute(&b, l); err != nil {
		return &delivery.MailError{Text: "the mail can't be written", Final: true}
	}
	msg.HTML = b.String()
	return m.sender.Send(ctx, msg)
}

// text returns the letter without HTML.
func (l *letter) text() string {
	var b strings.Builder
	for _, p := range slices.Concat([]string{l.Heading}, l.Paragraphs) {
		b.WriteString(p + "\n\n")
	}
	for _, r := range l.Rows {
		space := map[bool]string{true: "\n", false: " "}[strings.Contains(r.Value, "\n")]
		b.WriteString(r.Label + ":" + space + r.Value + "\n")
	}
	if len(l.Rows) > 0 {
		b.WriteByte('\n')
	}
	for _, to := range l.Links {
		b.WriteString(to.Text + ":\n" + to.URL + "\n\n")
	}
	b.WriteString("-- \n" + strings.Join(l.Small, "\n") + "\n")
	return b.String()
}

// confirm sends a form's confirmation to the person who sent it. Only the owner's words are in it, unless the address is known.
func (m *Mailer) confirm(ctx context.Context, d *delivery.Mail, p *payload, campaign *formsvc.Campaign) error {
	c, to := &campaign.Form.Confirmation, p.Data.Response.User.Email
	switch {
	case campaign.ID == "" || !c.Enabled:
		return &delivery.MailError{Text: "the form sends no confirmations any more", Final: true}
	case to == "":
		return &delivery.MailError{Text: "the response has no e-mail address", Final: true}
	}
	if err := m.take(ctx, d, to, false); err != nil {
		return err
	}
	language, title := campaign.Form.Language, oneLine(campaign.Title, maxTitle)
	l := &letter{Language: language, Heading: title, Small: []string{m.say(language, "receiptWhy")}}
	l.Paragraphs = []string{cmp.Or(strings.TrimSpace(c.Text), m.say(language, "receipt"))}
	l.Rows = []row{
		{m.say(language, "reference"), p.Data.Response.Reference}, {m.say(language, "time"), m.shown(p.Data.Response.CreatedAt, campaign)},
	}
	if c.Answers {
		known, err := m.svc.Webhooks.Known(ctx, campaign.AccountID, to)
		if err != nil {
			return err
		}
		if known {
			l.Rows = append(l.Rows, m.answers(p, campaign)...)
		}
	}
	subject := cmp.Or(strings.TrimSpace(c.Subject), m.say(language, "receiptSubject", title))
	return m.send(ctx, Message{To: to, ReplyTo: c.ReplyTo, Subject: subject, ID: d.ID}, l)
}

// take counts a mail to somebody who hasn't agreed to get mails. A repeated attempt was counted before.
func (m *Mailer) take(ctx context.Context, d *delivery.Mail, to string, question bool) error {
	if d.Again && !d.Replay {
		return nil
	}
	err := m.svc.Webhooks.TakeMail(ctx, formsvc.ID(d.Account), to, question)
	if limited, ok := errors.AsType[*formsvc.MailLimitError](err); ok {
		return &delivery.MailError{Text: limited.Text, Final: limited.Until.IsZero(), Later: limited.Until}
	}
	return err
}

// ask asks somebody whether to get notices. Nothing in it comes from the account.
func (m *Mailer) ask(ctx context.Context, d *delivery.Mail, hook *formsvc.Webhook) error {
	if m.opts.FormsURL == "" {
		return &delivery.MailError{Text: "this server doesn't know its public address, which the link to confirm needs", Final: true}
	}
	if err := m.take(ctx, d, hook.Address(), true); err != nil {
		return err
	}
	l := &letter{
		Language: "en", Heading: m.say("en", "askSubject"), Paragraphs: []string{m.say("en", "ask", m.opts.FormsURL)},
		Links: []link{{m.say("en", "askLink"), m.link(hook, true)}}, Small: []string{m.say("en", "askWhy")},
	}
	return m.send(ctx, Message{To: hook.Address(), Subject: m.say("en", "askSubject"), ID: d.ID}, l)
}

// link returns the address at which a recipient confirms or unsubscribes.
func (m *Mailer) link(hook *formsvc.Webhook, confirm bool) string {
	return strings.TrimRight(m.opts.FormsURL, "/") + "/mail/" + hook.MailToken(confirm)
}

// notify sends an owner's notice.
func (m *Mailer) notify(ctx context.Context, d *delivery.Mail, p *payload, campaign *formsvc.Campaign, hook *formsvc.Webhook) error {
	language := campaign.Form.Language
	l := &letter{Language: language}
	msg := Message{To: hook.Address(), ID: d.ID}
	if m.opts.FormsURL != "" {
		msg.Unsubscribe = m.link(hook, false)
		l.Small = append(l.Small, m.say(language, "stop")+" "+msg.Unsubscribe)
	}
	if p.Data.Campaigns != nil {
		m.daily(&msg, l, p)
		return m.send(ctx, msg, l)
	}
	title, r := oneLine(p.Data.Campaign.Title, maxTitle), &p.Data.Response
	name := map[bool]string{true: "new", false: "change"}[p.Type == webhook.ResponseCreated]
	msg.Subject = map[bool]string{true: "TEST: "}[p.Test] + m.say(language, name+"Subject", title, r.Reference)
	if hook.Mail.ReplyTo && !p.Test {
		msg.ReplyTo = r.User.Email
	}
	l.Heading = title
	l.Paragraphs = []string{m.say(language, name)}
	l.Rows = []row{{m.say(language, "reference"), r.Reference}, {m.say(language, "time"), m.shown(p.Timestamp, campaign)}}
	if name == "change" {
		l.Rows = append(l.Rows, row{m.say(language, "what"), string(p.Type)}, row{m.say(language, "status"), r.Status})
	}
	l.Rows = append(l.Rows, m.answers(p, campaign)...)
	if p.Data.Truncated {
		l.Paragraphs = append(l.Paragraphs, m.say(language, "truncated"))
	}
	if m.opts.ConsoleURL != "" && !p.Test && p.Type != webhook.ResponseDeleted {
		url := fmt.Sprintf("%s/campaigns/%s/responses/%s", strings.TrimRight(m.opts.ConsoleURL, "/"), p.Data.Campaign.UUID, r.UUID)
		l.Links = append(l.Links, link{m.say(language, "open"), url})
	}
	return m.send(ctx, msg, l)
}

// daily writes the mail of a day.
func (m *Mailer) daily(msg *Message, l *letter, p *payload) {
	all := 0
	for _, c := range p.Data.Campaigns {
		all += c.Responses
		l.Rows = append(l.Rows, row{oneLine(c.Title, maxTitle), fmt.Sprint(c.Responses)})
		if m.opts.ConsoleURL != "" {
			url := fmt.Sprintf("%s/campaigns/%s", strings.TrimRight(m.opts.ConsoleURL, "/"), c.UUID)
			l.Links = append(l.Links, link{oneLine(c.Title, maxTitle), url})
		}
	}
	msg.Subject = m.say(l.Language, "dailySubject", all)
	l.Heading = msg.Subject
}

// maxAnswer and maxRows limit the answers in a mail, in characters and in number; maxTitle is the length of a title.
const (
	maxAnswer = 2_000
	maxRows   = 200
	maxTitle  = 100
)

// answers returns what a person wrote, with the labels of the form.
func (m *Mailer) answers(p *payload, campaign *formsvc.Campaign) (rows []row) {
	language, left := campaign.Form.Language, p.Data.Response.Responses
	add := func(label string, values []string) {
		if len(rows) < maxRows && len(values) > 0 {
			rows = append(rows, row{label, cut(strings.Join(values, "\n"), maxAnswer)})
		}
	}
	user := p.Data.Response.User
	if name := strings.TrimSpace(user.FirstName + " " + user.LastName); name != "" {
		add(m.say(language, "name"), []string{name})
	}
	if user.Email != "" {
		add(m.say(language, "email"), []string{user.Email})
	}
	for i := range campaign.Modules {
		module := &campaign.Modules[i]
		values := slices.Clone(left[module.Name].Value)
		for j, value := range values {
			values[j] = m.written(module, language, value)
		}
		add(cmp.Or(module.Label, module.Name), values)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if !slices.ContainsFunc(campaign.Modules, func(m formsvc.Module) bool { return m.Name == name }) {
			add(name, left[name].Value)
		}
	}
	return rows
}

// written returns a value as people of the form's language write it, as on the form's page. Numbers and days that aren't any stay.
func (m *Mailer) written(module *formsvc.Module, language, value string) string {
	shown := module.Shown(value)
	switch code, _ := (&formsvc.Module{Type: module.Type}).Check(value); {
	case shown != value && module.Type != formsvc.ChoiceModule:
		return m.say(language, value) // yes or no
	case code == "" && module.Type == formsvc.NumberModule:
		return formsvc.WriteNumber(value, language, m.say(language, "decimal"))
	case code == "" && module.Type == formsvc.DateModule:
		day, _ := time.Parse(time.DateOnly, value)
		layout, _, _ := strings.Cut(m.say(language, "layout"), " 15")
		return day.Format(strings.TrimRight(layout, ",،"))
	}
	return shown
}

// oneLine returns a text without line breaks, of at most n characters.
func oneLine(s string, n int) string { return cut(strings.Join(strings.Fields(s), " "), n) }

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// shown returns a time in the zone and the language of the form.
func (m *Mailer) shown(t time.Time, campaign *formsvc.Campaign) string {
	zone, err := campaign.Zone()
	if err != nil { // of another release
		zone = time.UTC
	}
	return t.In(zone).Format(m.say(campaign.Form.Language, "layout")) + " " + formsvc.ZoneName(t.In(zone))
}

package main

import (
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// A stranger's words reach nobody but the owner, and the owner can't agree for the recipient of notices.
func TestMailsSpeakForNobody(t *testing.T) {
	t.Parallel()
	mails := serveMail(t)
	sh := newShell(t)
	sh.env = environment{"FORMSVC_SMTP=smtp://forms:mail-password@" + mails.addr + "?starttls=off", "FORMSVC_MAIL_FROM=Forms <forms@example.com>"}
	s := sh.serve(t, "--mails-per-address", "0", "--mails-per-hour", "0", "--trusted-proxy", "127.0.0.0/8")
	hook := map[string]any{"url": "mailto:owner@example.com", "events": []string{"response.created"}, "mail": map[string]any{"replyTo": true}}
	var seen strings.Builder // by the account
	ask := func(method, path string, body any) {
		a := must(s.ask(t.Context(), method, path, body, "Idempotency-Key: "+method+path))
		_, _ = fmt.Fprintln(&seen, a.status, a.header, a.body)
	}
	ask(http.MethodPost, "/v1/webhooks", hook)
	ask(http.MethodPost, "/v1/webhooks", hook)
	path := "/v1/webhooks/" + regexp.MustCompile(`"uuid":"([^"]*)"`).FindStringSubmatch(seen.String())[1]
	ask(http.MethodPut, path, hook)
	ask(http.MethodPost, path+"/rotate", nil)
	ask(http.MethodPost, path+"/rotate", map[string]string{"secret": testSecret})
	ask(http.MethodPost, path+"/test", nil)
	until(t, "the questions arrive", func() bool { return len(mails.list()) == 2 })
	browser := new(http.Client)
	signedIn(t, browser, strings.TrimSpace(s.do(t, "console-link")))
	for _, where := range []string{"", path[len("/v1/webhooks"):], path[len("/v1/webhooks"):] + "/deliveries"} {
		ask(http.MethodGet, "/v1/webhooks"+where, nil)
		seen.WriteString(fetchedBy(t, browser, s.url+"/console/webhooks"+where))
	}
	ask(http.MethodGet, "/v1/events", nil)
	for _, m := range regexp.MustCompile(`/deliveries/[0-9a-f-]{36}`).FindAllString(seen.String(), -1) {
		ask(http.MethodGet, "/v1"+m, nil)
		seen.WriteString(fetchedBy(t, browser, s.url+"/console"+m))
	}
	seen.WriteString(s.do(t, "webhooks", "list", "--json") + s.do(t, "webhooks", "deliveries", path[len("/v1/webhooks/"):], "--json"))
	link := regexp.MustCompile(`/f/mail/[\w-]+`).FindString(mails.list()[0])
	lacks(t, "what the account sees", seen.String(), link[len("/f/mail/"):], `"secret":"`, "whsec_", `"confirmedAt":"`)
	contains(t, "what the account sees", seen.String(), "not_allowed", `"test":true`)
	resp := must(http.Post(s.url+link, "application/x-www-form-urlencoded", nil))
	_ = resp.Body.Close()

	var modules []any
	for _, kind := range []string{"text", "longtext", "email", "url", "phone", "file"} {
		modules = append(modules, map[string]any{"name": kind, "type": kind})
	}
	modules = append(modules, map[string]any{"name": "pick", "type": "choice", "options": []string{"a"}, "other": true})
	form := s.call(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", map[string]any{
		"title": "Camp\r\nBcc: boss@example.com", "modules": modules,
		"form": map[string]any{"enabled": true, "prefill": []string{"text"}, "confirmation": map[string]any{"enabled": true, "answers": true}},
	})
	address := regexp.MustCompile(`http://[^"]+/f/\w+`).FindString(form)
	posts, accepted := 0, 0
	const fields, evil = "application/x-www-form-urlencoded", "EVIL http://evil.example\r\nBcc: evil@evil.example"
	post := func(contentType, query, body string) {
		posts++
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, address+query, strings.NewReader(body)))
		for _, name := range []string{"Accept-Language", "User-Agent", "Referer", "X-Forwarded-Host", "X-Request-Id", "Idempotency-Key"} {
			req.Header.Set(name, "evil.example")
		}
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("X-Forwarded-For", fmt.Sprint("192.0.2.", posts))
		req.Host = "evil.example"
		resp := must(http.DefaultTransport.RoundTrip(req))
		if _ = resp.Body.Close(); resp.StatusCode < 400 {
			accepted++
		}
	}
	for _, body := range []url.Values{
		{"firstName": {evil}}, {"lastName": {evil}}, {"text": {evil}}, {"longtext": {evil}}, {"email": {"ada@example.com"}}, {"url": {"http://evil.example/EVIL"}},
		{"pick": {"EVIL"}}, {"_page": {evil}}, {"_honeypot": {evil}, "text": {evil}},
	} {
		body["email"] = []string{"ada@example.com"}
		post(fields, "?text=EVIL&email=evil@evil.example&confirmation=EVIL&language=EVIL", body.Encode())
	}
	post("application/json", "", `{"user":{"email":"ada@example.com","firstName":"EVIL"},"responses":{"text":{"value":["EVIL"]}}}`)
	part := "--x\r\nContent-Disposition: form-data; name="
	post("multipart/form-data; boundary=x", "", part+"email\r\n\r\nada@example.com\r\n"+part+"file; filename=\"EVIL evil.example\"\r\nContent-Type: text/EVIL\r\n\r\nEVIL\r\n--x--\r\n")
	equal(t, accepted, posts, "%d of the posts are accepted")
	for _, email := range []string{
		"EVIL <ada@example.com>", `"EVIL" <ada@example.com>`, "ada@example.com (EVIL)", "(EVIL)ada@example.com", `"EVIL words"@example.com`, "ada@example.com\r\nBcc: evil@evil.example",
		"ada@example.com,evil@evil.example", "ada@example.com;evil@evil.example", "@evil.example:ada@example.com", "<ada@example.com>EVIL",
		"ada@example.com> NOTIFY=EVIL", "ada@example.com\x00EVIL", "ada@example.com\u2028Bcc: evil@evil.example", "ada@example.com\u202eEVIL", "=?utf-8?q?EVIL?= <ada@example.com>",
		"ada@example.com\u0085EVIL", "ada@example.com?bcc=evil@evil.example", "ada@example.com%0aBcc:evil@evil.example", "ada＠evil.example", "ada@evil。example", strings.Repeat("evil.", 50) + "@example",
	} {
		post(fields, "", url.Values{"email": {email}}.Encode())
	}
	equal(t, posts-accepted, 21, "%d addresses are refused")
	for _, email := range []string{"ада@example.com", "ada@ехample.com", "=?utf-8?q?ada?=@example.com", "'ada'@example.com", "ada@[127.0.0.1]", "\u212ada@example.com", "ada@example.com\t"} {
		post(fields, "", url.Values{"email": {email}, "text": {evil}}.Encode())
	}
	list := responses(regexp.MustCompile(`"uuid":"([^"]*)"`).FindStringSubmatch(form)[1])
	held := regexp.MustCompile(`"uuid":"([^"]*)"`).FindStringSubmatch(s.call(t, http.StatusOK, http.MethodGet, list+"?status=spam", nil))[1]
	s.call(t, http.StatusOK, http.MethodPatch, list+"/"+held, map[string]string{"status": "pending"})
	until(t, "a confirmation and a notice for each", func() bool { return len(mails.list()) == 2+2*accepted })
	replies := 0
	for _, text := range mails.list() {
		msg := must(mail.ReadMessage(strings.NewReader(text)))
		to, reply := must(msg.Header.AddressList("To")), msg.Header["Reply-To"]
		if len(to) != 1 || len(reply) > 1 || msg.Header["Bcc"] != nil || msg.Header["Cc"] != nil {
			t.Errorf("%q", msg.Header)
		}
		if to[0].Address != "owner@example.com" {
			lacks(t, "a confirmation", strings.ToLower(text), "evil", "reply-to:")
		} else if len(reply) == 1 {
			_ = must(mail.ParseAddress(reply[0]))
			lacks(t, "the header of a notice", strings.ToLower(fmt.Sprint(msg.Header)), "evil")
			replies++
		}
	}
	equal(t, replies, accepted, "%d notices with Reply-To")
}

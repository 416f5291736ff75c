package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/formsvc/toolkit/webhook"
)

// Secret is that of every webhook.
const Secret = "formbench-secret-0123456789abcdef"

// A Body is the payload of an event that carries the event's number.
type Body struct {
	text []byte
	at   int // of the number
}

const (
	numberMark   = "respondent."
	numberDigits = 7
)

// NewBody takes a payload that has a mark and digits to put the number into.
func NewBody(text []byte) (Body, error) {
	at := bytes.Index(text, []byte(numberMark))
	if at < 0 || len(text) < at+len(numberMark)+numberDigits {
		return Body{}, errors.New("the payload has no number")
	}
	return Body{text, at + len(numberMark)}, nil
}

// With returns the payload of event number i.
func (b Body) With(i int) []byte {
	text := bytes.Clone(b.text)
	for at := b.at + numberDigits - 1; at >= b.at; at-- {
		text[at] = "0123456789"[i%10]
		i /= 10
	}
	return text
}

// Number returns the number of the event that a payload is of.
func Number(text []byte) (i int, ok bool) {
	b, err := NewBody(text)
	if err != nil {
		return 0, false
	}
	for _, digit := range text[b.at : b.at+numberDigits] {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		i = i*10 + int(digit-'0')
	}
	return i, true
}

// A Poster signs and posts payloads over connections that it keeps.
type Poster struct {
	url       string
	transport *http.Transport
}

// NewPoster returns one that keeps as many connections.
func NewPoster(url string, conns int) *Poster {
	return &Poster{url, &http.Transport{
		MaxIdleConns: conns, MaxIdleConnsPerHost: conns, DisableCompression: true,
	}}
}

// Post posts a payload. id names the delivery.
func (p *Poster) Post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhook.DeliveryHeader, id)
	req.Header.Set(webhook.SignatureHeader, webhook.Sign([]byte(Secret), body))
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("post: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("post: answered %d", resp.StatusCode)
	}
	return nil
}

// Close closes the connections that are not in use.
func (p *Poster) Close() { p.transport.CloseIdleConnections() }

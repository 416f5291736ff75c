package formsvctest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/formsvc/toolkit/formsvc/digest"
)

// An Inbox keeps mails instead of sending them. It is a [digest.Sender], for [digest.NewMailer]. The zero value is ready for use. It
// is safe for concurrent use.
type Inbox struct {
	mu    sync.Mutex
	mails []digest.Message
	fail  func(*digest.Message) error
}

// Fail sets the function that refuses mails by returning an error; nil refuses none.
func (i *Inbox) Fail(f func(*digest.Message) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = f
}

// Send implements [digest.Sender].
func (i *Inbox) Send(_ context.Context, m digest.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fail != nil {
		if err := i.fail(&m); err != nil {
			return err
		}
	}
	i.mails = append(i.mails, m)
	return nil
}

// Mails returns the mails since the last call, by recipient and then in the order in which they were sent.
func (i *Inbox) Mails() []digest.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.mails
	i.mails = nil
	slices.SortStableFunc(list, func(a, b digest.Message) int { return strings.Compare(a.To, b.To) })
	return list
}

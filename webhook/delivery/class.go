package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// The classes of failures, in [Attempt.Error] and [Failure.Error]. More may be
// added.
const (
	ClassTimeout   = "timeout"         // the exchange or one of its steps took too long
	ClassDNS       = "dns"             // the host name could not be resolved
	ClassConnect   = "connect"         // no connection: refused or unreachable
	ClassTLS       = "tls"             // no trusted TLS connection
	ClassRefused   = "refused_address" // [Options.Control] did not allow the address
	ClassReset     = "reset"           // the connection broke before the response ended
	ClassTransport = "transport"       // anything else, such as a response that isn't HTTP
	ClassStatus    = "status"          // the status is neither 2xx nor 3xx
	ClassRedirect  = "redirect"        // the status is 3xx
	ClassCanceled  = "canceled"        // canceled by a shutdown; not recorded
	ClassURL       = "url"             // not sent: the URL is not absolute http or https, or has a user name
	ClassSecret    = "secret"          // not sent: there is no secret to sign with
	ClassPayload   = "payload"         // not sent: the queue has no payload for the event
	ClassMail      = "mail"            // [Options.Mail] returned a [MailError], or there is no Mail
)

// An unsent is the class of a request that can't be sent.
type unsent string

func (u unsent) Error() string { return "delivery: not sent: " + string(u) }

// classify returns the class of an attempt that ended with status, or with err before the end of
// the response; "" means success. ctx is the attempt's.
//
// The order matters: an error may have several classes, for example if the deadline ends a name
// resolution.
func classify(ctx context.Context, status int, err error) string {
	switch {
	case err == nil:
		return classifyStatus(status)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ClassTimeout
	case ctx.Err() != nil:
		return ClassCanceled
	}
	if class, ok := errors.AsType[unsent](err); ok {
		return string(class)
	}
	if _, ok := errors.AsType[*MailError](err); ok {
		return ClassMail
	}
	return classifyNetwork(err)
}

// resultOf returns what an attempt of this class says about its endpoint.
func resultOf(class string) schedule.Result {
	switch class {
	case "":
		return schedule.Success
	case ClassStatus, ClassRedirect, ClassMail:
		return schedule.Rejection
	case ClassCanceled, ClassURL, ClassSecret, ClassPayload:
		return schedule.Unsent
	case ClassTimeout:
		return schedule.Timeout
	default:
		return schedule.Failure
	}
}

func classifyStatus(status int) string {
	switch status / 100 {
	case 2:
		return ""
	case 3:
		return ClassRedirect
	default:
		return ClassStatus
	}
}

func classifyNetwork(err error) string {
	if errors.Is(err, ErrAddressRefused) {
		return ClassRefused
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ClassDNS
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return ClassTimeout
	}
	if isTLS(err) {
		return ClassTLS
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return ClassConnect
	}
	for _, reset := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, reset) {
			return ClassReset
		}
	}
	return ClassTransport
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	// crypto/tls reports alerts as errors of these operations, whose type isn't exported, and
	// returns its other errors without a type.
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "remote error" || e.Op == "local error") {
		return true
	}
	return strings.HasPrefix(err.Error(), "tls: ")
}

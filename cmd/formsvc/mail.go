package main

import (
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
)

// failureMail returns the mail about a digest, with the commands for its webhook.
func failureMail(d *formsvc.Digest) (subject, text string) {
	subject, text = digest.Compose(d)
	return subject, text + fmt.Sprintf("\nTo see the attempts:\n\n  formsvc webhooks deliveries %s --state failed --account %s\n\n"+
		"To send them again when the receiver works:\n\n  formsvc webhooks redeliver %s --since %s --account %s\n",
		d.WebhookID, d.AccountID, d.WebhookID, stamp{d.FirstAt}, d.AccountID)
}

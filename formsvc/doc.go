// Package formsvc is the domain of a forms service: its records, its rules, and the contract of its
// stores. It depends on neither HTTP nor SQL.
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//	blobs, err := fileblob.Open("files") // or s3blob.New; without blobs there are no files
//	svc, err := formsvc.New(store, &formsvc.Options{Blobs: blobs})
//	account, key, err := svc.Accounts.CreateWithKey(ctx, "default", formsvc.KeyInput{
//		Name: "first", Permissions: formsvc.AllPermissions(),
//	}) // show key.Value: it can't be read again
//
// Package [github.com/formsvc/toolkit/httpx] serves a [Service] as a REST API, and package
// [github.com/formsvc/toolkit/webhook/delivery] sends its webhooks. A host application can also
// call the Service directly.
//
// # Nouns
//
// An [Account] owns everything else; accounts can't see each other's data. A [Key] lets a program act for an account. A
// [Campaign] is a form, with a [Module] for each question. A [Response] is what one person submitted to it: a [User],
// [Answers], a status ([Workflow]) and a reference that is readable aloud. Programs keep their own [Metadata] with it. A
// [File], a [Comment] and a [Signature] belong to a response. An [Event] says what happened to a response, a [Webhook] is a URL that receives events, and a
// [Delivery] is one event for one webhook.
//
// # Limits
//
// In the options of this module's packages, 0 means the default, and a negative limit means none. A limit that says nothing about
// negative values can't be switched off: New refuses them.
//
// # Where to read on
//
// Each noun has a service, a field of [Service]: start with [Responses.Create],
// [Responses.Update], [Files.Upload], [Webhooks.Create] and [Events.List].
//
//   - Work in your own transaction: [Service.With].
//   - Act on events in Go, after the commit: [Events.Follow].
//   - Make a call idempotent, so that clients can retry it: [Call].
//   - Record who did it: [Service.As] and [Audits]. Sign people in: [Sessions].
//   - Export and erase a person's data: [Responses.Export], [Accounts.ErasePerson].
//   - Import old responses, delete an account: [Responses.Import], [Accounts.Delete].
//   - Run regular work, such as deleting old events: [Service.Run].
//   - Trace from the request to the webhook's receiver: [Options.TraceParent], package otelformsvc. Metrics: package promformsvc.
//   - Make a form from a struct, and read its answers: [ModulesOf], [Decode]. Test your program: package formsvctest.
//   - Write a store: [Store], and package [github.com/formsvc/toolkit/storage].
//
// # What is promised
//
// Each call that changes something is one atomic write, with the events that it raises and a delivery for every webhook
// that listens. When it returns nil, all of that is durable. When it fails, nothing was changed, except with
// [ErrUnknownOutcome]. Everything is safe for concurrent use, by any number of processes on one store. Nothing runs in
// the background unless you call [Service.Run].
package formsvc

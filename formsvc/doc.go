// Package formsvc is the domain of a forms service: what there is, the rules it
// follows, and the contract of the stores that keep it. It knows neither HTTP
// nor SQL.
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//	blobs, err := fileblob.Open("files", nil) // or s3blob.New; without blobs there are no files
//	svc, err := formsvc.New(store, &formsvc.Options{Blobs: blobs})
//	account, key, err := svc.Accounts.CreateWithKey(ctx, "default", formsvc.KeyInput{
//		Name: "first", Permissions: formsvc.AllPermissions(),
//	}) // show key: it can't be read again
//
// Package [github.com/formsvc/toolkit/httpx] serves a [Service] as a REST API, and
// package [github.com/formsvc/toolkit/webhook/delivery] sends its webhooks. A program
// that has requests of its own calls the Service directly.
//
// # Nouns
//
// An [Account] owns everything else; nothing of one account can be seen from
// another. A [Key] lets a program act for an account. A [Campaign] is a form, with a
// [Module] for each question. A [Response] is what one person submitted to it: a
// [User], [Answers], a status ([Workflow]) and a reference that people can read out.
// A [File], a [Comment] and a [Signature] belong to a response. An [Event] says what
// happened to a response, a [Webhook] is an address that is told of events, and a
// [Delivery] is one event on its way to one webhook.
//
// # Where to read on
//
// Each noun has a service, a field of [Service]: start with [Responses.Create],
// [Responses.Update], [Files.Upload], [Webhooks.Create] and [Events.List].
//
//   - In a transaction of yours: [Service.With].
//   - Acting on events in Go, after the commit, beside webhooks: [Events.Follow].
//   - A call that a client may send again and that happens once: [Service.Once].
//   - Who did it: [Service.As] and [Audits]. Signing people in: [Sessions].
//   - A person's data out, and gone: [Responses.Export], [Erasure].
//   - Regular work, such as deleting what is old: [Service.Run].
//   - Traces, from the request to the webhook's receiver: [Options.Tracer], package otelformsvc.
//   - Writing a store: [Store], and package [github.com/formsvc/toolkit/storage].
//
// # What is promised
//
// Each call that changes something is one atomic unit, with the events that it
// raises and a delivery for every webhook that listens: when it returns nil all of
// that is durable, and when it fails nothing was changed, [ErrUnknownOutcome] apart.
// What a caller can act on is an error of this package, asked for with [errors.Is];
// all other errors are faults of the machinery, whose text must not reach a client.
// Everything is safe for concurrent use, by any number of processes on one store,
// and runs nothing by itself.
package formsvc

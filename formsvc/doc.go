// Package formsvc is the domain of a form service: what there is, the rules it
// follows, and the contract of the stores that keep it. It knows neither HTTP
// nor SQL.
//
// # Nouns
//
// An [Account] owns everything else; nothing of one account can be seen from
// another. A [Key] lets a program act for an account, with some permissions. A
// [Campaign] is a form: a title, the hours in which it is open, and [Module]
// after Module the questions it asks; one without modules takes any answers. A
// [Response] is what one person submitted to a campaign: a [User], [Answers], a
// status, and a reference that people can read out. A [File] was uploaded to a
// response; its bytes are in a [blobstore.Store]. A [Comment] is a note on a
// response, and a [Signature] says that somebody signed it. An [Event] says that
// something happened to a response. A [Webhook] is an address that is told of
// events, and a [Delivery] is one event on its way to one webhook.
//
// # Life of a response
//
// [Responses.Create] takes a response while its campaign is open, if the
// campaign's modules allow the answers. It is "pending" then. [Responses.Update]
// changes user, answers and status. The [Workflow] says which statuses there
// are, which may follow which, and which are final: unless told otherwise any
// may follow any, and "completed" is final. Entering a final status sets
// CompletedAt, leaving it for one that isn't final clears it. A response is
// never too old to be changed: its user and its status can be even when the
// campaign has been closed or has got other modules; its answers can be changed
// to what the modules allow by then.
//
// # Events
//
// Creating a response raises response.created. An update raises
// response.updated when user or answers changed, response.status_changed when
// the status did, and response.completed when that status is final; an update
// that changes nothing raises nothing. A file raises file.uploaded and a signature
// signature.completed; a comment raises nothing. The types are in package
// [github.com/formsvc/toolkit/webhook].
//
// The payload of an event is made once, as bytes, and shows the response as the
// event left it. Every attempt at every delivery sends these bytes. A payload
// that would exceed [MaxPayload] goes without the answers, and says so in
// data.truncated; no event is dropped. Events and deliveries are stored in the
// same unit as the change, so that there is no event without a change, and no
// change whose event is lost. Deliveries may be repeated and may overtake each
// other; the event's identifier tells repetitions. A program that embeds the service is
// called with events by [Events.Follow], after the commit and in its order.
//
// # Stores
//
// A [Store] is where it all lies. Each method that writes is one atomic unit,
// which also carries the events that it raises; there is no transaction in the
// contract, so that a store can put many units into one physical commit. Read,
// decide and write are one unit too: UpdateCampaign and UpdateResponse are given
// the function that decides. A method that touches an account's data is told the
// account, and doesn't find what is another's. Package [github.com/formsvc/toolkit/storage] helps to
// choose a store or to write one.
//
// # Calls that may be repeated
//
// [Service.Once] is a view of the service for one call that a client may send again:
// the answer commits with what the call did, under a key that the client chose, so
// that the call happens once whatever dies in between, on whatever node it is sent
// again. [Service.As] is a view for somebody: what he does to accounts, keys and
// webhooks is in the audit trail ([Audits]), in the same unit as the change.
//
// # Signing in
//
// Keys are for programs. A person signs in to the settings of an account with a link
// that somebody who may make one hands over ([Sessions.NewLink]): it is good once, and
// becomes a [Session], which its value shows in each request. Of both the store has
// hashes only. [Sessions.Authenticate] asks the store each time, so that a session that
// was ended is over on every node.
//
// What such a person is shown costs the same however much there is:
// [Events.Recent], [Events.About], and [Deliveries.Sample], which looks at a few
// deliveries of each part of time. [Key.LastUsedAt] is written by [Service.Run].
//
// # Quotas
//
// [Quotas.Take] counts a request of a key in a window of time, over all nodes of a
// store and without asking it each time. httpx calls it; programs that call the
// services themselves need not.
//
// # People and time
//
// [Erasure] removes one person's data, or what is old, and writes a [Receipt].
// [Responses.Export] reads a campaign of any size in flat memory.
//
// # Files
//
// [Files.Upload] first makes the bytes durable, as a blob, and then the file and
// its event, in one unit. So a file never points at bytes that are not there; the
// other way round, a blob without a file may be left when a process dies in
// between. [Files.Sweep] removes such blobs when they are a day old; it first bars
// their identifiers in the store, so that an upload that was only asleep can't
// come back and point at what was removed.
//
// A file has a SHA-256 of its content and a checksum of every block of it. What
// [Files.Open] reads is checked block by block before it is given out: a damaged
// content fails with [ErrCorrupt], in whole and in part. [Files.Verify] compares
// the hashes too, and finds such files before somebody needs them.
//
// # Signatures
//
// A [Signature] is a record: who signed, when, and the SHA-256 of what. That is a
// file of the response, which can't change, or else its answers as they are in the
// unit that records the signature. Answers may change later; whoever compares the
// hash with that of [CanonicalAnswers], which is a form that any language can make
// (RFC 8785), sees whether they did. Nothing is verified about the signer: that is
// for whoever took the signature.
//
// # Wiring
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//	// handle err
//	defer store.Close()
//	blobs, err := fileblob.Open("files", nil) // or s3blob.New; without blobs there are no files
//	// handle err
//	svc, err := formsvc.New(store, &formsvc.Options{Blobs: blobs}) // nil for the defaults
//	// handle err
//	api, err := httpx.New(svc, nil) // the REST API, under any prefix of your mux
//	// handle err
//	mux.Handle("/forms/", http.StripPrefix("/forms", api))
//	engine, err := delivery.New(store, nil) // sends what is due
//	// handle err
//	go engine.Run(ctx)
//
//	account, _, key, err := svc.Accounts.CreateWithKey(ctx, "default", formsvc.KeyInput{
//		Name: "first", Permissions: formsvc.AllPermissions(),
//	})
//	// handle err; show key, it can't be read again
//
// A program that has requests of its own calls the [Service] directly. To write
// in a transaction of its own it calls [Service.With] with a store that is bound
// to that transaction: the response, its events and the program's rows commit
// together or not at all.
//
// # Concurrency
//
// A [Service] starts no goroutine that outlives a call, or the reader that
// [Files.Open] returned, and is safe for concurrent use, by any number of
// processes on one store. It goes by two things that it remembers. A campaign is
// remembered in order to judge new responses: a yes holds only if the store
// finds the campaign unchanged when it writes, and a no is judged again on a
// campaign that was just read, so that no response is taken or refused on old
// grounds. A key is remembered for [KeyCacheTTL], which is how long
// another node may go on accepting one that was revoked. Uses of keys, which it gathers
// for a minute, are lost when the process is killed.
//
// An update is applied to the record as it is by then, or refused with
// [ErrStale] when the caller said which version it has seen and that is another.
// The answers of an update are judged by the campaign as it was when the call
// began.
//
// # When something fails
//
// What the caller can act on is an error of this package, asked for with
// [errors.Is]: a *[ValidationError] names everything that is wrong with an
// input at once, a *[TransitionError] the statuses that are allowed. All other
// errors are faults of the machinery; their text must not reach a client. A
// *[ValidationError] repeats the names of members, but never a value.
//
// When a call fails nothing was changed and no event raised. The one exception
// is [ErrUnknownOutcome], when the connection to the store broke during a
// commit: look before trying again. After [ErrUnavailable] trying again later
// may help. A response that finds its reference taken or its campaign changed is
// decided anew by itself, a few times.
package formsvc

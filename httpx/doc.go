// Package httpx serves the REST API of a [formsvc.Service] over net/http: one
// [Handler], from one table of routes, that can be mounted under any prefix.
//
//	api, err := httpx.New(svc, nil)
//	// handle err
//	mux.Handle("/forms/", http.StripPrefix("/forms", api))
//
// # Order of checks
//
// Every request is judged in the same order, and the first thing that is wrong
// decides the answer: the path (404), the method (405), whether there is room for it
// (503), the key (401), how often it is used (429), its permission (403), the media type (415), the query (400), the body (400, 413,
// 422), the record (404, 409, 412). Within a query and within a body everything
// that is wrong is told at once.
//
// An upload looks for the record before it reads the body, and for what else the
// header tells before that: a digest that is malformed (400), a length that is
// too large (413). A client that sends Expect: 100-continue learns all that
// without sending the file.
//
// A path is taken as it was sent: one with an empty segment, a dot segment, an
// escape or a trailing slash names nothing. It is never redirected, since a
// redirected POST loses its body with many clients. (A [http.ServeMux] in front
// redirects such paths by itself before it asks this handler.)
//
// # Errors
//
// Every error is a problem document (RFC 9457), application/problem+json:
//
//	{"type":"about:blank","title":"Unprocessable Entity","status":422,
//	 "detail":"The body is well-formed, but breaks the rules named in errors.",
//	 "code":"validation_failed","requestId":"5f0c…",
//	 "errors":[{"pointer":"/user/email","code":"required","detail":"is required"}]}
//
// Clients decide on code, which is stable; title and detail are for people. An
// entry of errors has a pointer (RFC 6901) when it is about the body, and a
// parameter instead when it is about the query; at most [MaxErrors] are listed.
// An entry never repeats a value. Where a member's name is too long to be
// repeated, or has a NUL character, the pointer names the object around it.
// permission_denied has the member permission, transition_not_allowed the member
// allowed, a list of statuses. The detail of webhook_exists names the webhook
// that is in the way.
//
// # Bodies
//
// A body must be one JSON object (RFC 8259, and RFC 7493 where that is
// stricter). Unknown, repeated and mistyped members are refused; nothing is
// dropped in silence. A body whose shape is wrong is 400 invalid_body with all
// of it in errors; one that is not such an object at all is 400 with a code of
// its own (malformed_json, duplicate_member, …); one that breaks a rule of the
// service is 422 validation_failed.
//
// On POST and PUT, null for an optional member means that it is absent. On PUT
// and PATCH the members of the answer that clients can't set are accepted and
// ignored, so that what was read can be changed and sent back. Where an action
// needs no input the body may be absent; one that is there is held to the same
// rules.
//
// # Versions
//
// Single resources have an ETag. GET and HEAD answer 304 to a matching
// If-None-Match. PUT and PATCH take If-Match, and fail with 412 when the record
// changed meanwhile. The ETag of a campaign also counts its responses, since
// they show in it; If-Match looks at the version of the campaign only, because
// a new response is no reason to refuse its owner. That of a webhook likewise
// tells whether a previous secret still signs. DELETE and the rotation of a
// secret refuse conditions, which they would have to ignore.
//
// # Repeating a request
//
// Every POST takes an Idempotency-Key, so that it can be sent again until its answer
// arrives and is done once. The key is 1 to 255 characters of printable ASCII without
// spaces, best a random UUID; anything else, or two of them, is 400
// invalid_idempotency_key. Quotes around it, as in
// draft-ietf-httpapi-idempotency-key-header, are a part of it. Other methods ignore
// the header, since repeating them is harmless.
//
// Who repeats a request within 24 hours gets the first answer once more: its status,
// its body byte for byte, Location and ETag, whatever became of the record meanwhile,
// with Idempotent-Replayed: true and an X-Request-Id of its own. That is so on every
// node, and after a crash: the answer commits with what the call did, so there are both or
// neither, and nothing is ever stuck under way. An answer of 4xx is remembered, too, where
// the whole body was read and judged. Not remembered are answers of 5xx, 401, 403 and
// 429, problems found before the body had been read (405, 408, 413, 415, an unknown
// parameter), refused uploads, and 409 delivery_in_progress, which passes; such a
// request is tried anew.
//
// A key belongs to the account and to one request: method, path, query and body as
// they were sent. With another request under the same key the answer is 422
// idempotency_mismatch. Of an upload the file, its name, its Content-Type and its
// module count, not the form around it. A request whose twin is being served on the same node is
// 409 idempotency_in_flight, with Retry-After; on another node one of the two is done,
// and the other is answered like it.
//
// A secret that the first answer showed is not in the repeated one: whoever lost it
// rotates. An answer about a person whose data was erased is gone, 410 erased. A
// redelivery of more than 500 deliveries that broke off goes on when it is repeated, and
// counts the rest.
//
// # Files
//
// A file is uploaded in one of two ways. The body is multipart/form-data with one
// part named file and at most one named module, in any order, or it is the file
// itself, with its Content-Type, its name in Content-Disposition: attachment
// (RFC 6266) and its module in the query parameter of that name. It may be empty.
// What is larger than the service allows is 413 file_too_large; without a blob
// store everything about files is 501 not_supported. Nothing is left of an
// upload that failed.
//
// A form with anything else in it is 400: invalid_boundary, malformed_multipart,
// multipart_incomplete (it ends before its final boundary), part_header_too_large,
// trailing_data, unknown_part, repeated_part, file_required, nested_multipart or
// unsupported_transfer_encoding. The header of a part may have 16 KiB, and so may
// what follows the last one.
//
// Content-Digest (RFC 9530) with sha-256 or sha-512 is checked, and is 400
// digest_mismatch; other algorithms are ignored. It covers the body as it was
// sent, which for a form is all of it; in the header of the part it covers the
// file.
//
// A download takes the conditions and the Range header of RFC 9110. Ranges are
// ignored where there are more than 16 of them. Content-Type is the declared one
// where a browser can do no harm with it, otherwise application/octet-stream.
// Every block is checked before it is sent: a file that is damaged or missing
// where it is kept is 502 blob_corrupt, and where damage shows after the
// beginning the connection is cut, so that no answer looks complete that isn't.
//
// A file may take longer than ReadTimeout and WriteTimeout of the [http.Server]:
// as long as the client neither makes us wait for a minute, nor for a minute and
// a second more for every 16 KiB altogether, the deadlines of the connection
// move. On a download a wait may be longer, by the time that 10 MiB may take which
// the systems on both sides hold. They are set like that also on a server without
// timeouts. A body that comes slower is 408 body_timeout. With as many files on
// their way as [Options.MaxTransfers] one more is 503 too_many_transfers.
//
// # Comments and signatures
//
// Both belong to one response, are only added and listed, and have no address of
// their own: the answer to a POST has no Location. They are taken whatever the
// status of the response and its campaign. The author of a comment is the name of
// the API key, which the body can't set; null when whoever was let in has none.
//
// documentSha256 of a signature is the hash of the file that fileUuid names, or
// without one of the member responses as it is then, in the form of RFC 8785:
// [formsvc.CanonicalAnswers] tells how to make it. A file of anything else than
// this response is 422 unknown_file, whether it exists or not. signedAt is now
// unless given, and may be at most five minutes ahead of our clock, since clocks
// differ; what is later is a mistake, and is 422 in_the_future.
//
// # Exports
//
// GET …/responses.csv and …/responses.ndjson answer with all responses that the
// list's filters let through, in its order, and not with those that are made
// while the answer is on its way. Nothing is held open in the store meanwhile: a
// response that changes is shown as it is when its turn comes, and one that is
// deleted before that is left out. Slow clients are treated as on downloads, and
// an export counts among [Options.MaxTransfers]. HEAD only looks for the campaign.
//
// What breaks off can be resumed: cursor takes the uuid of the last response that
// arrived whole, or the nextCursor of a page of the list with the same filters and
// order; what follows it is sent. An answer that has begun and can't be finished is
// cut (HTTP/1 without the last chunk, HTTP/2 with a reset), never ended as if it
// were whole.
//
// NDJSON has one response a line, as GET has it, each ended by a line feed. It is
// exact.
//
// CSV (RFC 4180, UTF-8 without a byte order mark) is for spreadsheets. Its records
// end in CR LF. The first has the names of the columns, also when the export goes
// on from a cursor: uuid, reference, status, email, firstName, lastName, createdAt,
// updatedAt, completedAt, then those under which there are answers, first the
// modules of the campaign in their order, then all others, sorted. Which these are
// is decided by every response that the filters let through, so that the parts of
// a resumed export have the same columns unless an answer gets a new name in
// between. The responses are read twice for it, and nothing is sent before they
// were read once; when an answer under a new name comes up after that the export is
// cut, or 503 when nothing was sent. A name that is one of the fixed columns', or
// begins with "responses.", has "responses." before it. With more than 10,000 such
// columns, or 1 MiB of their names, the answer is 422 too_many_columns.
//
// A cell has the value of an answer; several are joined by "; ". So a cell doesn't
// tell two values from one that has a semicolon, nor an answer without a value from
// none. A value, a name of a column or of a person that a spreadsheet might take for
// a formula has an apostrophe before it: when its first character other than spaces
// and apostrophes is = + - @, one of these in full width, a tab, CR or LF. To get
// the text itself, take one apostrophe from the front of what begins with an
// apostrophe and has such a first character; nothing else was changed.
//
// # Webhooks
//
// POST /v1/webhooks subscribes, and doing it again is harmless: where the
// account has a webhook with the same url, events and campaignUuid, the answer
// is 200 with that one in place of 201. It is 409 webhook_exists when the body
// names another secret or other headers, which would be ignored otherwise;
// whether that one is disabled stays as it is and shows in the answer. DELETE
// answers 204 also when there is no such webhook.
//
// A secret is shown by the request that made it, with 201 or by a rotation, and
// never again; the values of headers are not shown at all. What is read has null
// for them. PUT replaces everything but what it can't know: without a secret, or
// with null, the secret stays, and so does the value of a header that is null.
//
// A delivery shows its attempts, each with the beginning of the receiver's
// answer as text, in which U+FFFD stands for what is no UTF-8: up to 4 KiB, in
// lists up to 256 bytes.
//
// # Events
//
// GET /v1/events answers with the envelopes that webhooks get, byte for byte,
// oldest first, as long as the service keeps them. Its nextCursor is always a
// string: where to go on, also when nothing follows yet. A reader begins without
// a cursor, or with the one it kept, and repeats:
//
//  1. GET /v1/events?cursor=…, and handle the items;
//  2. keep nextCursor, in the same transaction as the effect of the items;
//  3. wait a while if more is false.
//
// It sees every event once, also those that commit late; one that handles items
// but fails to keep the cursor sees them again, with the same id. A page may
// have fewer items than limit, or none, while more is true. The filter event may
// change from one request to the next.
//
// # Quotas
//
// Every request with a good key to a route that is not public counts, whatever its
// answer is: HEAD as well as GET, what is refused with 403, 404 or 422, an upload
// that fails. What has no good key, goes to no route, is a replay of an earlier
// answer or is refused with 429 or for overload does not. All answers to what counts, and the refusal
// for the quota, have X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset (whole seconds until the window ends, rounded up), and the
// fields of draft-ietf-httpapi-ratelimit-headers-10, RateLimit-Policy and
// RateLimit, whose policy is named "key" or "account" for what is counted. A
// request beyond the quota is 429 quota_exceeded, with Retry-After. Remaining is as
// far as this node knows; a replay beyond the quota is refused like any request.
//
// A key that makes requests faster than [Options.Rate] is refused with 429
// rate_limited before they count. When authentication fails for one address more
// than 120 times, and then more than once a second, it is 429 too_many_failures in
// place of 401; a good key is never refused for that.
//
// # Description
//
// GET /openapi.json answers with the description of the API in OpenAPI 3.1, which names
// [Options.BaseURL], or the path that the Handler is mounted under, as its server.
// GET /docs is a page for people: how to begin, and Swagger UI over that description,
// in which a key can be entered and every operation tried. It needs no other host and
// keeps no key. Both are public.
//
// The description is written by hand, in openapi.yaml. Every request and answer of the
// tests of this package is checked against it, so what it says is what happens.
//
// # Overload
//
// [Options.MaxRequests] are worked on at once. Whoever comes meanwhile waits, before
// anything is known of him, for [Options.MaxWait] at most, and is then answered 503
// unavailable with Retry-After. To refuse him at once would bring his next request at
// once, and no refusal is so cheap that a server could give ten of them for each request
// that it serves; one that waits costs no more than an idle connection, and keeps its
// client from sending more. Only where [Options.MaxWaiting] wait already the answer comes
// at once, and the connection is closed. A server should bound its connections as well,
// since each takes memory.
//
// A place is for work and not for waiting on clients: a request has none while its body
// arrives, from where its answer begins, or while it transfers a file. So slow clients
// keep nobody out. The bodies that are held have [Options.MaxBodies] together. What is
// refused has changed nothing and does not count for the quota. Public routes always answer.
//
// # Logging
//
// The [Handler] logs what it can't blame on the client: answers of 500 and
// above, and panics; of what it refuses for overload every ten seconds how much that
// was. A record has the request's id, its method and the pattern
// of its route, and the cause; never a body, a key, an address or a query.
package httpx

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
// decides the answer: the path (404), the method (405), the key (401), its
// permission (403), the media type (415), the query (400), the body (400, 413,
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
// # Logging
//
// The [Handler] logs what it can't blame on the client: answers of 500 and
// above, and panics. A record has the request's id, its method and the pattern
// of its route, and the cause; never a body, a key, an address or a query.
package httpx

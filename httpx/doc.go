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

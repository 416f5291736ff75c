// Package console serves web pages where people make campaigns, publish their forms, look at the responses, create keys,
// manage webhooks and look at failures.
//
//	pages, err := console.New(svc, api, &console.Options{APIURL: "/forms"}) // api is an httpx.Handler under /forms
//	// handle err
//	mux.Handle("/console/", http.StripPrefix("/console", pages))
//
// A [Handler] works under any prefix. The server renders its pages. They work without scripts, load nothing from other
// hosts, and store nothing in the browser but cookies: for the session, for the time zone, and for each campaign's columns and last change. They show
// one account: that of the signed-in visitor.
//
// # Signing in
//
// Without [Options.Authenticate], the operator of an account signs in with a one-time link ([formsvc.Sessions.NewLink]) at
// "/sign-in/TOKEN" below the pages; "formsvc console-link" prints one. Links last 15 minutes. Opening a link shows a
// page with a button, and the button redeems it, since mail scanners open links too. It also shows a code for the browser in which the
// link was asked for. On the page "People" an operator or admin invites others ([formsvc.Members]), each with a role. They sign in by a link, by a
// password, at an OpenID provider ([Options].Providers), or by a proxy's header ([Options].Proxied).
// Sessions are stored in the store: ending one, or removing a person, ends it on every node. With [Options.SendLink], the sign-in page
// mails links to members and to the contact of an account.
//
// With Authenticate, the host application decides who is signed in, and there are no links or sessions. Visitors see and do
// only what [Visitor].Permissions has, and every change names them as its actor. A [formsvc.Role] is a usual set of permissions.
//
// # Safety
//
// Forms from other sites are refused ([net/http.CrossOriginProtection], a cookie with SameSite, and a token of the
// session). A form takes effect once, however often it is sent. Secret values are shown only in the reply to the form
// that created them: reloading or going back doesn't show them again. Pages must not be cached or framed, and run only
// their own script. They never redirect to an address from the request.
//
// # Failures
//
// A page that can't be shown says what is wrong and what to do. For errors that the visitor didn't cause it shows only
// an identifier; the log has it with the error.
//
// # Shutting down
//
// Open pages wait for changes. Have the server end them with RegisterOnShutdown of [http.Server] and [Handler.Close].
package console

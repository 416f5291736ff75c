// Package settings serves account settings as web pages: where keys are made, webhooks
// are managed, and people look at campaigns, responses and what failed.
//
//	pages, err := settings.New(svc, "/forms", nil) // the API is at /forms/v1
//	// handle err
//	mux.Handle("/settings/", http.StripPrefix("/settings", pages))
//
// A [Handler] works under any prefix. Its pages are made on the server, work without
// scripts, load nothing from other hosts, and keep no data in the browser but one
// cookie. They show one account: that of who is signed in.
//
// # Signing in
//
// Without [Options.Authenticate], whoever has a one-time link ([formsvc.Sessions.NewLink])
// signs in with it, at "/sign-in/TOKEN" below the pages: "formsvc settings-link" prints
// one. Links last 15 minutes. Opening one does nothing yet, since programs that look
// into mail do so, too; the button on that page redeems it. Sessions are in the store:
// one that is ended is ended on every node, and none lasts longer than 12 hours. With
// [Options.SendLink] the page of signing in mails links to the contact of an account.
//
// With Authenticate the embedding program says who is signed in, and all of that is not
// there. Whoever it lets in may do all that pages offer, keys with every permission included.
//
// # Safety
//
// Forms from other sites are refused ([net/http.CrossOriginProtection], a cookie with
// SameSite, and a token of the session). What a form does it does once, however often it
// is sent. Values that are shown once are in the answer to the form that made them, and
// in no other: reloading or going back does not show them again. Pages are not to be
// cached, may not be framed, and run no script but their own. They lead to no address
// that was part of a request.
//
// # Failures
//
// A page that can't be shown says what is wrong and what to do. Of errors that are not
// the visitor's it shows an identifier alone; the log has that and the error.
package settings

// Package intake serves the public forms of campaigns ([formsvc.Form]): a page made from the modules, and what is
// posted to its address by the page, by a form on somebody's own site, or by a script.
//
//	forms, err := intake.New(svc, nil)
//	// handle err
//	mux.Handle("/f/", http.StripPrefix("/f", forms))
//
// A [Handler] works under any prefix, and redirects only within it. Pages work without scripts, load nothing from other hosts
// and set no cookies. They are in [formsvc.Form].Language, or in the one of its languages that the browser prefers; the owner's
// texts stay as they are.
//
// # What can be posted
//
// POST to /f/TOKEN takes a form: application/x-www-form-urlencoded, or multipart/form-data with files. The fields
// email, firstName and lastName are the user's; every other field is a module. Names that begin with an underscore and
// aren't a module's are ignored. An empty field is no answer. The reply to a form is a redirect to the thanks page or
// to the owner's address, or the page again with what was typed and all errors, status 422.
//
// The page's address may fill in the fields that [formsvc.Form].Prefill names; what is posted counts.
//
// Numbers and dates are read as the language of the page writes them, and stored as the API takes them. If one can be read in
// two ways, such as 1.234 in German, the page asks. Equal choices count once. A form to a campaign without questions has at
// most 50 answers. Files are taken by questions for files only.
//
// A script sends {"user": {…}, "responses": {…}} as to the API, a form with "Accept: application/json", or a form by fetch. It
// gets {"reference": …} or a problem document. Scripts of other origins than [formsvc.Form].AllowedOrigins are refused; an
// HTML form may be on any site. Allowed origins can read every reply.
//
// # Sent twice
//
// A page carries a random text in the field _page, and scripts may send the header Idempotency-Key. The same content
// with the same text makes one response, whether sent at once or later. Other content, of fields or files, makes another
// response: a visitor who goes back and corrects an answer expects the correction to arrive, and a form's address must not
// change a response. A form whose files failed is completed by sending its page again.
//
// # Bots
//
// A form whose field _honeypot is filled, or our page sent back within two seconds, is held as spam
// ([formsvc.ResponseInput].Held), as is what [Options].Judge calls spam. The visitor can't tell. Each address may
// send ten forms a minute to a campaign, and thirty to all. Replies to bots and beyond the limit take 200 ms longer, so that
// floods over few connections cost little.
//
// # Limits
//
// A form has at most 4 MiB of text, 5,000 fields and 50 files, and its files have at most twice [formsvc.Options].MaxFile
// together. A page has at most 2 MiB, and as much again of what was typed. A body that pauses for 20 seconds is cut.
package intake

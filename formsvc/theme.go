package formsvc

// A Theme gives the pages of httpx/intake and httpx/console, and the mails of formsvc/digest, the looks and words of a host.
// Pages still run no inline scripts or styles, and load nothing from other hosts. The zero value changes nothing.
type Theme struct {
	// Product is the host's name: in the header of pages, in titles of the console, and before the subject of mails.
	// Defaults to none, and to "Forms" in the console.
	Product string
	// Logo is an SVG, PNG, JPEG, GIF or WebP that takes the place of Product, which is its text. Defaults to none.
	Logo []byte
	// Stylesheet is CSS that pages load after their own. The custom properties --accent, --on-accent (texts on it), --link,
	// --background, --text, --font and --radius stay in later versions. Defaults to none.
	Stylesheet []byte
	// Layout is the source of an html/template that defines three blocks, which may be empty: "head", the end of the page's
	// head, "header", in place of Logo and Product, and "footer". They know .Product, .Logo (its address), .Title (of the
	// page) and .Texts (by name; "code" is the language). Defaults to none.
	Layout string
	// Texts are words of pages by language and name. A language's own come before those of the language "", which is for
	// all, those of the pages, and those of "en". Names are those in httpx/intake/texts/en.json; in English, "KIND.NAME" in
	// httpx/console/templates/texts.json; "error_" with the Code of a [FieldError] or [Refusal] of [Options].CheckResponse;
	// and "layout_" with any name. A new language needs all of en.json; browsers that prefer it
	// get it, and [Options].Languages lets forms choose it, by its name in the console ("languages.CODE"). Defaults to none.
	Texts map[string]map[string]string
	// MailFooter is the end of mails. Defaults to none.
	MailFooter string
}

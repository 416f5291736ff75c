package formsvc

// A Theme gives the pages of httpx/intake and httpx/console, and the mails of formsvc/digest, the looks and words of a host.
// The zero value changes nothing. Pages still run no inline scripts or styles and load nothing from other hosts: a font in a
// style sheet, for example, is one that the visitor has.
type Theme struct {
	// Product is the host's name: in the header of pages, in the title of the console's, and before the subject of mails.
	// Defaults to none, and to "Forms" in the console.
	Product string
	// Logo is an image that takes the place of Product in the header: SVG, PNG, JPEG, GIF or WebP. Product is its text for
	// those who don't see it. Defaults to none.
	Logo []byte
	// Stylesheet is CSS that pages load after their own. The custom properties --accent, --on-accent (texts on it),
	// --background, --text, --font and --radius stay as they are in later versions; set those of the dark scheme under
	// @media (prefers-color-scheme: dark). Defaults to none.
	Stylesheet []byte
	// Layout is the source of an html/template that defines some of the blocks "head", the end of the page's head,
	// "header", in place of Logo and Product, and "footer". They know .Product, .Logo (its address), .Title (of the page),
	// .Language, .Direction ("ltr" or "rtl") and .Texts (by name). Defaults to none.
	Layout string
	// Texts are words of pages by language and name; those of the language "" are for all. A language's own come first,
	// then those of "", those of the pages, and those of "en". The names are those in httpx/intake/texts/en.json, for the
	// console "KIND.NAME" in httpx/console/templates/texts.json, in English only, "layout_" and any name for Layout, and
	// "error_" with a [FieldError].Code or [Refusal].Code of [Options].CheckResponse. A language that the pages don't have
	// needs all names of en.json; browsers that prefer it get it. Defaults to none.
	Texts map[string]map[string]string
	// MailFooter is the end of mails. Defaults to none.
	MailFooter string
}

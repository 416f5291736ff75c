package formsvc

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/draw"
	_ "image/gif" // of logos
	"image/jpeg"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strings"
)

// A FormTheme is how the page of a form looks. It comes after the host's [Theme].
type FormTheme struct {
	// Accent is the colour of the button, links and marks, such as "#1557a8". Pages make it darker or lighter where it can't be read
	// otherwise. "" for the page's own.
	Accent string `json:"accent,omitzero"`
	Scheme string `json:"scheme,omitzero"` // "light" or "dark"; "" for what the visitor's device prefers
	Width  string `json:"width,omitzero"`  // of the page, "narrow" or "wide"; "" for one in between
	// Logo and Cover, a wide picture at the top of the page, are a PNG or JPEG of at most [LogoWidth] × [LogoHeight] or [CoverWidth] ×
	// [CoverHeight] pixels and [MaxLogo] or [MaxCover] bytes, which is stored without metadata. Larger ones of up to a million pixels are
	// scaled down, GIFs are converted. [Campaigns.Picture] takes still larger ones.
	Logo    []byte `json:"logo,omitempty"`
	LogoAlt string `json:"logoAlt,omitzero"` // what the logo says, at most 200 characters; "" for the campaign's title
	Cover   []byte `json:"cover,omitempty"`
}

// Limits of the pictures of a [FormTheme]. They are stored with the campaign, so they are small.
const (
	LogoWidth   = 640       // pixels
	LogoHeight  = 160       // pixels
	MaxLogo     = 20 << 10  // bytes
	CoverWidth  = 1200      // pixels
	CoverHeight = 400       // pixels
	MaxCover    = 48 << 10  // bytes
	MaxPicture  = 5_000_000 // bytes of what [Campaigns.Picture] takes

	maxSide     = 4_000 // pixels
	maxUnscaled = 1 << 20
	maxLogoAlt  = 200
)

// errPicture is for pictures that can't become a logo or a cover.
var errPicture = errors.New("must be a whole PNG, JPEG or GIF of at most 4,000 × 4,000 pixels and 5 MB")

// Picture makes the "logo" or the "cover" of a form from a PNG, JPEG or GIF of at most 4,000 × 4,000 pixels and [MaxPicture] bytes. One at a
// time is made. It fails with a *[ValidationError] at /form/theme/logo or cover.
func (c Campaigns) Picture(ctx context.Context, name string, picture []byte) (_ []byte, err error) {
	defer wrap(&err, "make picture")
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c.s.drawing <- struct{}{}:
		defer func() { <-c.s.drawing }()
	}
	made, err := fitted(name, picture, maxSide*maxSide)
	if err != nil {
		return nil, invalid("/form/theme/"+name, "invalid_image", err.Error())
	}
	return made, nil
}

// fitted returns a picture of at most so many pixels as a logo or cover. That of a picture that it returned is itself.
func fitted(name string, picture []byte, pixels int) ([]byte, error) {
	width, height, most := LogoWidth, LogoHeight, MaxLogo
	if name == "cover" {
		width, height, most = CoverWidth, CoverHeight, MaxCover
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(picture)) // before memory is taken for the pixels
	if err != nil || len(picture) > MaxPicture || size.Width > maxSide || size.Height > maxSide || size.Width*size.Height > pixels {
		return nil, errPicture
	}
	from, _, err := image.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, errPicture
	}
	area := from.Bounds() // of a GIF's first picture, which may be smaller
	scale := min(1, float64(width)/float64(area.Dx()), float64(height)/float64(area.Dy()))
	if scale == 1 && kind == "jpeg" && len(picture) <= most && bare(picture) {
		return picture, nil // to make it again would blur it
	}
	for ; ; scale /= 2 {
		at := func(n int) int { return max(1, int(math.Round(float64(n)*scale))) }
		if made := encoded(scaled(from, at(area.Dx()), at(area.Dy())), most); len(made) <= most {
			return made, nil
		}
	}
}

// encoded returns a picture as PNG, or as JPEG on white if a PNG has more bytes than that.
func encoded(from image.Image, most int) []byte {
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	_ = encoder.Encode(&b, from) // a buffer takes all
	if b.Len() <= most {
		return b.Bytes()
	}
	opaque := image.NewRGBA(from.Bounds())
	draw.Draw(opaque, opaque.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(opaque, opaque.Rect, from, from.Bounds().Min, draw.Over)
	for quality := 90; quality >= 30 && b.Len() > most; quality -= 20 {
		b.Reset()
		_ = jpeg.Encode(&b, opaque, &jpeg.Options{Quality: quality})
	}
	return b.Bytes()
}

// bare reports whether a JPEG has nothing but pixels, as those that we make: neither metadata nor comments, and nothing behind its end.
func bare(picture []byte) bool {
	for i, b := range picture[1:] {
		if picture[i] == 0xff && (b >= 0xe0 || b == 0xd9 && i+2 < len(picture)) {
			return false
		}
	}
	return true
}

// scaled returns a picture of that size, which is no larger. Each pixel is the mean of those that it stands for.
func scaled(from image.Image, width, height int) image.Image {
	area, to := from.Bounds(), image.NewRGBA(image.Rect(0, 0, width, height))
	if area.Size() == to.Rect.Max {
		return from
	}
	line := image.NewRGBA(image.Rect(0, 0, area.Dx(), 1))
	sums := make([]int, 4*width)
	for y := range height {
		clear(sums)
		top, bottom := y*area.Dy()/height, (y+1)*area.Dy()/height
		for at := top; at < bottom; at++ {
			draw.Draw(line, line.Rect, from, image.Pt(area.Min.X, area.Min.Y+at), draw.Src)
			for i := range sums {
				x := i / 4
				for column := x * area.Dx() / width; column < (x+1)*area.Dx()/width; column++ {
					sums[i] += int(line.Pix[4*column+i%4])
				}
			}
		}
		for i, sum := range sums {
			x := i / 4
			columns := (x+1)*area.Dx()/width - x*area.Dx()/width
			to.Pix[y*to.Stride+i] = uint8(sum / (columns * (bottom - top))) //nolint:gosec // a mean of bytes
		}
	}
	return to
}

// accentForm is a colour as browsers write it.
var accentForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// Check fails with a *[ValidationError] if the looks aren't valid.
func (t *FormTheme) Check() error {
	var e ValidationError
	e.checkTheme(*t)
	return e.err()
}

// checkTheme notes the faults of a form's looks, and returns them in canonical form.
func (e *ValidationError) checkTheme(t FormTheme) FormTheme {
	if t.Accent = strings.ToLower(t.Accent); t.Accent != "" && !accentForm.MatchString(t.Accent) {
		e.add("/form/theme/accent", "invalid_value", "must be empty or a colour such as #1557a8")
	}
	if !slices.Contains([]string{"", "light", "dark"}, t.Scheme) {
		e.add("/form/theme/scheme", "invalid_value", "must be empty, light or dark")
	}
	if !slices.Contains([]string{"", "narrow", "wide"}, t.Width) {
		e.add("/form/theme/width", "invalid_value", "must be empty, narrow or wide")
	}
	e.checkLine("/form/theme/logoAlt", t.LogoAlt, maxLogoAlt)
	t.Logo, t.Cover = e.checkPicture("logo", t.Logo), e.checkPicture("cover", t.Cover)
	return t
}

// checkPicture notes that a picture can't be the logo or the cover of a form, or returns what is stored of it.
func (e *ValidationError) checkPicture(name string, picture []byte) []byte {
	if len(picture) == 0 {
		return nil
	}
	if e.host != nil { // not in [FormTheme.Check]
		e.host.drawing <- struct{}{}
		defer func() { <-e.host.drawing }()
	}
	made, err := fitted(name, picture, maxUnscaled)
	if err != nil {
		e.add("/form/theme/"+name, "invalid_image", "must be a whole PNG, JPEG or GIF of at most a million pixels")
	}
	return made
}

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
	// Logo is a PNG or JPEG of at most [LogoWidth] × [LogoHeight] pixels and [MaxLogo] bytes, which is stored without metadata. Larger ones
	// of up to a million pixels are scaled down, GIFs are converted. [Campaigns.Logo] takes still larger ones.
	Logo    []byte `json:"logo,omitempty"`
	LogoAlt string `json:"logoAlt,omitzero"` // what the logo says, at most 200 characters; "" for the campaign's title
}

// Limits of a [FormTheme]'s logo. It is stored with the campaign, so it is small.
const (
	LogoWidth  = 640       // pixels
	LogoHeight = 160       // pixels
	MaxLogo    = 20 << 10  // bytes
	MaxPicture = 5_000_000 // bytes of what [Campaigns.Logo] takes

	maxSide     = 4_000 // pixels
	maxUnscaled = 1 << 20
	maxLogoAlt  = 200
)

// errPicture is for pictures that can't become a logo.
var errPicture = errors.New("must be a whole PNG, JPEG or GIF of at most 4,000 × 4,000 pixels and 5 MB")

// Logo makes the logo of a form from a PNG, JPEG or GIF of at most 4,000 × 4,000 pixels and [MaxPicture] bytes. One at a time is made.
// It fails with a *[ValidationError] at /form/theme/logo.
func (c Campaigns) Logo(ctx context.Context, picture []byte) (_ []byte, err error) {
	defer wrap(&err, "make logo")
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c.s.drawing <- struct{}{}:
		defer func() { <-c.s.drawing }()
	}
	logo, err := newLogo(picture, maxSide*maxSide)
	if err != nil {
		return nil, invalid("/form/theme/logo", "invalid_image", err.Error())
	}
	return logo, nil
}

// newLogo returns a logo for a picture of at most so many pixels. That of a logo is itself.
func newLogo(picture []byte, most int) ([]byte, error) {
	size, kind, err := image.DecodeConfig(bytes.NewReader(picture)) // before memory is taken for the pixels
	if err != nil || len(picture) > MaxPicture || size.Width > maxSide || size.Height > maxSide || size.Width*size.Height > most {
		return nil, errPicture
	}
	from, _, err := image.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, errPicture
	}
	width, height := from.Bounds().Dx(), from.Bounds().Dy()
	scale := min(1, LogoWidth/float64(width), LogoHeight/float64(height))
	if scale == 1 && kind == "jpeg" && len(picture) <= MaxLogo && bare(picture) {
		return picture, nil // to make it again would blur it
	}
	if scale < 1 {
		from = scaled(from, max(1, int(math.Round(float64(width)*scale))), max(1, int(math.Round(float64(height)*scale))))
	}
	for {
		if logo := encoded(from); len(logo) <= MaxLogo {
			return logo, nil
		}
		from = scaled(from, max(1, from.Bounds().Dx()/2), max(1, from.Bounds().Dy()/2))
	}
}

// encoded returns a picture as PNG, or as JPEG on white if a PNG is too large.
func encoded(from image.Image) []byte {
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	_ = encoder.Encode(&b, from) // a buffer takes all
	if b.Len() <= MaxLogo {
		return b.Bytes()
	}
	opaque := image.NewRGBA(from.Bounds())
	draw.Draw(opaque, opaque.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(opaque, opaque.Rect, from, from.Bounds().Min, draw.Over)
	for quality := 90; quality >= 30 && b.Len() > MaxLogo; quality -= 20 {
		b.Reset()
		_ = jpeg.Encode(&b, opaque, &jpeg.Options{Quality: quality})
	}
	return b.Bytes()
}

// bare reports whether a JPEG has neither metadata nor comments, as those that we make.
func bare(picture []byte) bool {
	for i := 2; i+4 <= len(picture); i += 2 + int(picture[i+2])<<8 + int(picture[i+3]) {
		switch marker := picture[i+1]; {
		case marker == 0xda: // the pixels begin
			return bytes.HasSuffix(picture, []byte{0xff, 0xd9})
		case marker >= 0xe0:
			return false
		}
	}
	return false
}

// scaled returns a smaller picture. Each pixel is the mean of those that it stands for.
func scaled(from image.Image, width, height int) image.Image {
	area, to := from.Bounds(), image.NewRGBA(image.Rect(0, 0, width, height))
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
	if len(t.Logo) > 0 {
		if e.host != nil { // not in [FormTheme.Check]
			e.host.drawing <- struct{}{}
			defer func() { <-e.host.drawing }()
		}
		var err error
		if t.Logo, err = newLogo(t.Logo, maxUnscaled); err != nil {
			e.add("/form/theme/logo", "invalid_image", "must be a whole PNG, JPEG or GIF of at most a million pixels")
		}
	}
	return t
}

package formsvc_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// picture returns a picture in one of three formats: of noise, or of a half that can be seen and a half that can't.
func picture(t *testing.T, kind string, width, height int, noise bool) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			switch {
			case noise:
				n := random.Uint32()
				img.SetNRGBA(x, y, color.NRGBA{byte(n), byte(n >> 8), byte(n >> 16), 255})
			case x < width/2:
				img.SetNRGBA(x, y, color.NRGBA{200, 0, 0, 255})
			}
		}
	}
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withText adds metadata to a PNG or JPEG.
func withText(file []byte) []byte {
	if file[0] == 0xff {
		return append(append([]byte{}, file[:2]...), append([]byte("\xff\xe1\x00\x08secret"), file[2:]...)...)
	}
	chunk := []byte("tEXtComment\x00secret")
	chunk = binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4)), chunk...), crc32.ChecksumIEEE(chunk))
	return append(append(append([]byte{}, file[:33]...), chunk...), file[33:]...)
}

// A picture is small, whole and without metadata, and stays as it is.
func TestPictures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	byOthers := must(base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")) // without 0xff
	for _, x := range []struct {
		name          string
		picture       []byte
		width, height int
		kind          string
	}{
		{"logo", picture(t, "png", 60, 30, false), 60, 30, "png"}, {"logo", picture(t, "gif", 2_000, 1_000, false), 320, 160, "png"}, {"logo", picture(t, "jpeg", 1_300, 650, false), 320, 160, "png"},
		{"logo", picture(t, "png", 3_999, 2, false), 640, 1, "png"}, {"logo", picture(t, "png", 1, 4_000, false), 1, 160, "png"}, {"logo", picture(t, "png", 640, 160, true), 0, 0, "jpeg"},
		{"logo", withText(byOthers), 1, 1, "png"}, {"logo", withText(picture(t, "png", 60, 30, false)), 60, 30, "png"}, {"logo", withText(picture(t, "jpeg", 60, 30, true)), 60, 30, "png"}, {"logo", picture(t, "jpeg", 60, 30, true), 60, 30, "jpeg"},
		{"cover", picture(t, "png", 3_000, 500, false), 1_200, 200, "png"}, {"cover", picture(t, "gif", 100, 2_000, false), 20, 400, "png"}, {"cover", picture(t, "png", 600, 200, true), 600, 200, "jpeg"},
		{"cover", withText(picture(t, "jpeg", 1_200, 400, false)), 1_200, 400, "png"}, {"cover", picture(t, "jpeg", 1_200, 400, true), 0, 0, "jpeg"},
	} {
		made, theme, most := must(w.svc.Campaigns.Picture(t.Context(), x.name, x.picture)), formsvc.FormTheme{}, formsvc.MaxLogo
		at := &theme.Logo
		if x.name == "cover" {
			at, most = &theme.Cover, formsvc.MaxCover
		}
		*at = made
		size, kind, err := image.DecodeConfig(bytes.NewReader(made))
		if err != nil || kind != x.kind || x.width > 0 && (size.Width != x.width || size.Height != x.height) || len(made) > most || bytes.Contains(made, []byte("secret")) {
			t.Errorf("%d × %d %s of %d bytes, %v; want %d × %d %s", size.Width, size.Height, kind, len(made), err, x.width, x.height, x.kind)
		}
		saved := must(w.svc.Campaigns.Create(t.Context(), w.account, formsvc.CampaignInput{Title: "x", Form: formsvc.Form{Theme: theme}}))
		if !reflect.DeepEqual(saved.Form.Theme, theme) {
			t.Errorf("a %s changes when it is saved", x.kind)
		}
		if img, _, _ := image.Decode(bytes.NewReader(made)); x.kind == "png" && x.width == 320 {
			if r, _, _, a := img.At(x.width/4, 80).RGBA(); r>>8 < 190 || r>>8 > 210 || a != 0xffff {
				t.Errorf("the red is %d %d", r>>8, a)
			}
		}
	}
	whole := picture(t, "jpeg", 60, 30, true)
	bomb := picture(t, "png", 1, 1, false)
	binary.BigEndian.PutUint32(bomb[16:], 4_000)
	binary.BigEndian.PutUint32(bomb[20:], 4_001)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	for _, bad := range [][]byte{nil, []byte("<svg/>"), whole[:len(whole)/2], bomb, append(picture(t, "png", 1, 1, false), make([]byte, formsvc.MaxPicture)...)} {
		_, err := w.svc.Campaigns.Picture(t.Context(), "logo", bad)
		wantFaults(t, err, "/form/theme/logo invalid_image")
	}
	_, err := w.svc.Campaigns.Picture(t.Context(), "cover", bomb)
	wantFaults(t, err, "/form/theme/cover invalid_image")
	var part bytes.Buffer // of a GIF
	frame := image.NewPaletted(image.Rect(5, 5, 10, 7), []color.Color{color.Black})
	if err := gif.EncodeAll(&part, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 2_000, Height: 2_000}}); err != nil {
		t.Fatal(err)
	}
	must(w.svc.Campaigns.Picture(t.Context(), "cover", part.Bytes()))
	hidden := must(w.svc.Campaigns.Picture(t.Context(), "logo", append(whole, "secret\xff\xd9"...)))
	if bytes.Contains(hidden, []byte("secret")) {
		t.Error("what is behind the end of a JPEG is stored")
	}
	half := must(png.Decode(bytes.NewReader(picture(t, "png", 640, 160, true)))).(*image.RGBA)
	clear(half.Pix[:len(half.Pix)/2]) // can't be seen
	var clearPart bytes.Buffer
	wantError(t, png.Encode(&clearPart, half), nil)
	onWhite, kind, err := image.Decode(bytes.NewReader(must(w.svc.Campaigns.Picture(t.Context(), "logo", clearPart.Bytes()))))
	if r, _, _, _ := onWhite.At(1, 1).RGBA(); err != nil || kind != "jpeg" || r>>8 < 250 {
		t.Errorf("a transparent picture becomes a %s whose red is %d, %v", kind, r>>8, err)
	}
	check := func(theme formsvc.FormTheme, want ...string) {
		t.Helper()
		wantFaults(t, w.svc.Campaigns.Check(formsvc.CampaignInput{Title: "x", Form: formsvc.Form{Theme: theme}}), want...)
	}
	check(formsvc.FormTheme{Accent: "#ABCDEF", Scheme: "dark", Width: "wide", Logo: picture(t, "gif", 1_000, 1_000, false)})
	large := picture(t, "gif", 1_100, 1_000, false)
	check(formsvc.FormTheme{Logo: large, Cover: large}, "/form/theme/logo invalid_image", "/form/theme/cover invalid_image")
	check(formsvc.FormTheme{Accent: "#fff", Scheme: "red", Width: "40rem", LogoAlt: "a\x00"}, "/form/theme/accent invalid_value", "/form/theme/scheme invalid_value", "/form/theme/width invalid_value", "/form/theme/logoAlt nul_not_allowed")
}

package formsvc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Lengths of passwords in characters (NIST SP 800-63B-4 §3.1.1.2).
const (
	MinPassword       = 15
	MinSecondPassword = 8 // for a member who can also sign in at an OpenID provider
	MaxPassword       = 200
)

// A PasswordLogin is an attempt to sign in.
type PasswordLogin struct {
	Email, Password string
	Account         string // its name; "" means the oldest that has the person as a member with a password
	Network         string // where the attempt comes from: failures are counted for it and the person
	Device          string // the browser's User-Agent
}

// Failures in a row from one network, for one person, after which neither the password nor any other is accepted: until the
// hour ends, and until the day ends. They reject nobody else, and not the person from elsewhere.
const (
	failuresAnHour = 100 // NIST SP 800-63B-4 §3.2.2
	failuresADay   = 200
)

// SignInByPassword begins a session, and returns its value, which can't be read again. It fails with [ErrUnauthenticated] if the address or
// the password is wrong, or after too many failures; neither the error nor the time says which. At most four passwords are hashed at once.
func (s Sessions) SignInByPassword(ctx context.Context, in PasswordLogin) (session Session, value string, err error) {
	defer wrap(&err, "sign in")
	m, err := s.withPassword(ctx, &in)
	if err != nil {
		return Session{}, "", err
	}
	right, err := s.try(ctx, m, in.Network, in.Password)
	if err == nil && (!right || m.ID == "") {
		err = ErrUnauthenticated
	}
	if err != nil {
		return Session{}, "", err
	}
	return s.begin(ctx, m, SignedInByPassword, in.Device)
}

// withPassword returns the member that an attempt is for, or an empty one.
func (s Sessions) withPassword(ctx context.Context, in *PasswordLogin) (*Member, error) {
	if CheckText(in.Email, in.Account) != nil || in.Email == "" {
		return new(Member), nil
	}
	list, err := s.s.store.Members(ctx, MemberQuery{Email: in.Email})
	if err != nil {
		return nil, err
	}
	var account Account
	if in.Account != "" {
		if account, err = s.s.store.AccountByName(ctx, in.Account); ignoreNotFound(err) != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(list, func(m Member) bool { return m.Password != "" && (in.Account == "" || m.AccountID == account.ID) })
	if i < 0 {
		return new(Member), nil
	}
	return &list[i], nil
}

// try counts an attempt, and reports whether the password is right and there were not too many. A success makes the counting begin again,
// since it is part of the name of the count. Unknown people share a count, so that strangers can't add more than one for each network.
func (s Sessions) try(ctx context.Context, m *Member, network, password string) (bool, error) {
	name := fmt.Sprintf("sign-in %s %s %d", network, m.ID, m.SignedInAt.UnixMicro())
	used, err := s.s.store.AddQuota(ctx, []QuotaCount{s.s.countIn(time.Hour, name), s.s.countIn(24*time.Hour, name)})
	if err != nil {
		return false, err
	}
	right, err := s.s.matches(ctx, m.Password, password)
	return right && used[0] <= failuresAnHour && used[1] <= failuresADay, err
}

// SetPassword gives a member a password, and ends all their sessions but the one that it begins, whose value it returns. Unless the member
// signed in by a link in this session, or has no password, old must be the present one. It fails with a *[ValidationError], and with
// [ErrUnauthenticated] if the session has ended.
func (s Sessions) SetPassword(ctx context.Context, session *Session, old, password string) (_ Session, value string, err error) {
	defer wrap(&err, "password")
	m, err := s.s.member(ctx, MemberQuery{AccountID: session.AccountID, ID: session.MemberID})
	if err == nil && m.Epoch != session.Epoch {
		err = ErrUnauthenticated
	}
	if err != nil {
		return Session{}, "", unauthenticated(err)
	}
	if err := checkPassword(&m, password); err != nil {
		return Session{}, "", err
	}
	if m.Password != "" && session.Way != SignedInByLink {
		right, err := s.try(ctx, &m, "of session "+string(session.ID), old)
		if err == nil && !right {
			err = invalid("/old", "invalid_value", "is not your present password")
		}
		if err != nil {
			return Session{}, "", err
		}
	}
	hash, err := s.s.hashPassword(ctx, password)
	if err != nil {
		return Session{}, "", err
	}
	changed, err := Members(s).update(ctx, m.Key(), AuditPasswordSet, func(now *Member) error {
		if now.Epoch != session.Epoch {
			return ErrUnauthenticated // it ended meanwhile
		}
		now.Password, now.Epoch = hash, now.Epoch+1
		return nil
	})
	if err != nil {
		return Session{}, "", err
	}
	way := session.Way
	if way == SignedInByLink {
		way = SignedInByPassword // so that the next change needs this one
	}
	return s.begin(ctx, &changed, way, session.Device)
}

// commonWords are the parts of which the most frequent passwords consist, one a line.
//
//go:embed common-words.txt
var commonWords string

// guessable finds years, punctuation and blanks, but not emoji.
var guessable = regexp.MustCompile(`(?:19|20)\d\d|[\pP\p{Sm}\p{Sc}\p{Sk}\pZ]+`)

// checkPassword refuses passwords that are short, or that consist of little else than common words, repetition, and the person's own name.
func checkPassword(m *Member, password string) error {
	least := MinPassword
	if m.Subject != "" {
		least = MinSecondPassword
	}
	code, detail := textFault(password)
	switch n := utf8.RuneCountInString(password); {
	case code != "":
		return invalid("/password", code, detail)
	case n < least:
		return invalid("/password", "too_short", fmt.Sprintf("must have at least %d characters; a few words make a good one", least))
	case n > MaxPassword:
		return invalid("/password", "too_long", fmt.Sprintf("must have at most %d characters", MaxPassword))
	}
	left := fold(password)
	for _, word := range append(strings.FieldsFunc(fold(m.Email+" "+m.Name), func(r rune) bool { return strings.ContainsRune("@. -_+", r) }), strings.Fields(commonWords)...) {
		if len(word) > 2 {
			left = strings.ReplaceAll(left, word, "")
		}
	}
	left = guessable.ReplaceAllString(left, "")
	distinct := []rune(left)
	slices.Sort(distinct)
	if len(slices.Compact(distinct)) < 5 {
		return invalid("/password", "too_common", "is easy to guess; use words that don't belong together")
	}
	return nil
}

// Parameters of argon2id: OWASP's choice with the least memory, 7 MiB. A hash names its own.
const (
	argonMemory = 7 << 10 // KiB
	argonTime   = 5
	argonFormat = "$argon2id$v=19$m=%d,t=%d,p=1$%s$%s"
)

// hashPassword returns the hash of a password with a new salt, as a PHC string.
func (c *core) hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails since Go 1.24
	key, err := c.argon(ctx, password, salt, argonTime, argonMemory)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(argonFormat, argonMemory, argonTime, encode(salt), encode(key)), err
}

// matches reports whether a hash is that of the password. An empty hash takes as long, and matches none.
func (c *core) matches(ctx context.Context, hash, password string) (bool, error) {
	memory, passes, salt, want := uint32(argonMemory), uint32(argonTime), make([]byte, 16), []byte(nil)
	if parts := strings.Split(hash, "$"); len(parts) == 6 {
		_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &memory, &passes)
		if err != nil {
			return false, err
		}
		salt, _ = base64.RawStdEncoding.DecodeString(parts[4])
		want, _ = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if len(password) > 4*MaxPassword {
		password = ""
	}
	got, err := c.argon(ctx, password, salt, passes, memory)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// argon hashes a password when it's its turn.
func (c *core) argon(ctx context.Context, password string, salt []byte, passes, memory uint32) ([]byte, error) {
	select {
	case c.hashing <- struct{}{}:
		defer func() { <-c.hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey(norm.NFC.Bytes([]byte(password)), salt, passes, memory, 1, 32), nil
}

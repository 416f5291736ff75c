package main

import (
	"context"
	"errors"
	"math/big"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/formsvc"
)

// looks are those of all pages.
func looks() formsvc.Theme {
	return formsvc.Theme{
		Product:    "Clubhouse",
		Stylesheet: []byte(":root { --accent: #0a6b4f; --radius: 0 }\nheader { border-bottom: 4px double }\n"),
		Texts: map[string]map[string]string{
			"":   {"full": "This club's plan is used up."}, // in all languages
			"en": {"error_invalid_iban": "Enter the IBAN of an account, such as DE89 3704 0044 0532 0130 00"},
			"de": {"error_invalid_iban": "Geben Sie eine IBAN ein, zum Beispiel DE89 3704 0044 0532 0130 00"},
		},
		MailFooter: "Clubhouse, 1 Main Street",
	}
}

// A membership is what a club's form asks.
type membership struct {
	Boat   string  `form:"boat" options:"single,double,eight" label:"Which boat?"`
	Weight int     `form:"weight,min=30,max=200" label:"Your weight in kg"`
	IBAN   string  `form:"iban,format=iban" label:"The account that pays"`
	Since  *string `form:"since" label:"Member since"`
}

// decisions are the statuses of memberships.
func decisions() *formsvc.Workflow {
	return &formsvc.Workflow{
		Statuses:    []string{"accepted", "refused"}, // beside pending, the status of new responses
		Transitions: map[string][]string{"pending": {"accepted", "refused"}, "refused": {"pending"}},
		Final:       []string{"accepted", "refused"}, // raise response.completed
	}
}

// check is the product's rule: an eight takes nobody above 90 kg.
func (p *product) check(_ context.Context, _ *formsvc.Campaign, _, after *formsvc.Response) error {
	if m, err := formsvc.Decode[membership](after.Answers); err == nil && m.Boat == "eight" && m.Weight > 90 {
		return &formsvc.ValidationError{Fields: []formsvc.FieldError{{
			Pointer: "/responses/weight/value/0", Code: "too_heavy", Detail: "must be at most 90 in an eight",
		}}}
	}
	return nil
}

// limits are those of the tenant's plan. A tenant without a plan has the usual ones.
func (p *product) limits(ctx context.Context, account formsvc.ID) (l formsvc.Limits, err error) {
	err = p.pool.QueryRow(ctx, "SELECT 1, 3 FROM plans WHERE account_id = $1 AND plan = 'free'", string(account)).Scan(&l.Campaigns, &l.Responses)
	return l, ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// checkIBAN checks the digits of an IBAN (ISO 13616).
func checkIBAN(text string) error {
	s := strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	if len(s) < 15 || len(s) > 34 {
		return errors.New("must be an IBAN")
	}
	digits := ""
	for _, r := range s[4:] + s[:4] {
		switch {
		case r >= '0' && r <= '9':
			digits += string(r)
		case r >= 'A' && r <= 'Z':
			digits += big.NewInt(int64(r - 'A' + 10)).String()
		default:
			return errors.New("must be an IBAN")
		}
	}
	n, _ := new(big.Int).SetString(digits, 10)
	if n.Mod(n, big.NewInt(97)).Int64() != 1 {
		return errors.New("must be an IBAN")
	}
	return nil
}

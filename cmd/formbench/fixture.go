package main

import (
	"fmt"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// The data is a function of its number, so that the ceiling can answer with the
// bytes that the API answers with, and so that two runs store the same.

const (
	pageSize      = 20
	smallCampaign = 1_000
	bodies        = 64  // different responses that are posted in turn
	readTargets   = 256 // different responses that are read in turn
)

// modules are the questions of every campaign. Their names are in the order of
// encoding/json, which sorts the members of a map.
func modules() []formsvc.Module {
	return []formsvc.Module{
		{Name: "arrival", Label: "When will you arrive?", Type: formsvc.DateModule, Required: true},
		{
			Name: "attendance", Label: "How will you take part?", Type: formsvc.ChoiceModule, Required: true,
			Options: []string{"in_person", "remote", "undecided"},
		},
		{
			Name: "dietary", Label: "What can't you eat?", Type: formsvc.ChoiceModule, Multiple: true,
			Options: []string{"vegetarian", "vegan", "no nuts", "no gluten", "no lactose"},
		},
		{Name: "guests", Label: "How many guests will you bring?", Type: formsvc.NumberModule},
		{Name: "motivation", Label: "Why would you like to come?", Type: formsvc.TextModule, Required: true, MaxLength: 2_000},
	}
}

// submission returns what person number i submits, about 500 bytes of JSON.
func submission(i int) (formsvc.User, []formsvc.Answer) {
	firsts := [...]string{"Ada", "Grace", "Zoë", "Edsger", "Barbara", "Alan", "Radia", "Donald"}
	lasts := [...]string{"Lovelace", "Hopper", "Ångström", "Dijkstra", "Liskov", "Turing", "Perlman"}
	options := modules()[1].Options
	user := formsvc.User{
		Email: fmt.Sprintf("respondent.%07d@example.com", i), FirstName: firsts[i%len(firsts)], LastName: lasts[i%len(lasts)],
	}
	return user, []formsvc.Answer{
		{Name: "arrival", Value: []string{fmt.Sprintf("2026-09-%02d", 1+i%28)}},
		{Name: "attendance", Value: []string{options[i%len(options)]}},
		{Name: "dietary", Value: []string{"vegetarian", "no nuts"}},
		{Name: "guests", Value: []string{fmt.Sprint(i % 4)}},
		{Name: "motivation", Value: []string{
			"I have followed the programme since its first year and would like to meet the people behind it. " +
				"Our group of " + fmt.Sprint(2+i%9) + " works on accessible forms, and we could show what we learnt from ours.",
		}},
	}
}

// storedAt returns when stored response number i was made: each is a millisecond
// younger than the one before.
func storedAt(i int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Millisecond)
}

// storedID returns the identifier of stored response number i, a UUID of
// version 7.
func storedID(i int) formsvc.ID {
	millis, random := fmt.Sprintf("%012x", storedAt(i).UnixMilli()), scatter(i)
	return formsvc.ID(fmt.Sprintf("%s-%s-7%03x-8%03x-%012x",
		millis[:8], millis[8:], random&0xfff, random>>12&0xfff, random>>16&0xffff_ffff_ffff))
}

// storedReference returns a reference that no other number has. They ascend,
// which stores faster than real ones and makes no difference to what is read.
func storedReference(i int) string {
	const alphabet = "23467FHKLMQRTWXY"
	text := []byte("?????-?????")
	for n := len(text) - 1; n >= 0; n-- {
		if text[n] == '?' {
			text[n] = alphabet[i&15]
			i >>= 4
		}
	}
	return string(text)
}

// scatter spreads numbers over 64 bits.
func scatter(i int) uint64 {
	return uint64(i) * 0x9e37_79b9_7f4a_7c15 //nolint:gosec // a count is not negative
}

// storedResponse returns response number i as a store keeps it.
func storedResponse(i int, campaign *formsvc.Campaign) formsvc.Response {
	user, answers := submission(i)
	at := storedAt(i)
	return formsvc.Response{
		ID: storedID(i), AccountID: campaign.AccountID, CampaignID: campaign.ID, Reference: storedReference(i),
		Status: formsvc.StatusPending, User: user, Answers: formsvc.NewAnswers(answers...), Version: 1,
		CreatedAt: at, UpdatedAt: at,
	}
}

// readNumbers are the numbers of the responses that are read, spread evenly
// over a campaign of n.
func readNumbers(n int) []int {
	list := make([]int, min(n, readTargets))
	for i := range list {
		list[i] = i * n / len(list)
	}
	return list
}

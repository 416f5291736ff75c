package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/storage/memory"
)

func Example() {
	url, key := service() // such as https://forms.example.com, and a key of it
	ctx := context.Background()
	api := must(client.New(url, key, nil))
	campaign := must(api.Campaigns.Create(ctx, client.CampaignInput{Title: "Bicycle survey"}))
	must(api.Responses.Create(ctx, campaign.UUID, client.ResponseInput{
		User:    formsvc.User{Email: "ada@example.com"},
		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "colour", Value: []string{"red"}}),
	}))
	for response, err := range api.Responses.All(ctx, campaign.UUID, nil) {
		fmt.Println(response.User.Email, response.Answers.JSON(), err)
	}
	_, err := api.Campaigns.Get(ctx, "none")
	fmt.Println(errors.Is(err, formsvc.ErrNotFound))
	// Output:
	// ada@example.com {"colour":{"value":["red"]}} <nil>
	// true
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// service starts a service in memory.
func service() (url, key string) {
	svc := must(formsvc.New(memory.New(), nil))
	_, made, err := svc.Accounts.CreateWithKey(context.Background(), "example", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	return httptest.NewServer(must(httpx.New(svc, nil))).URL, must(made, err).Value
}

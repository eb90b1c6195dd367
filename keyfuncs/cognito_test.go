package keyfuncs_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
)

// cognitoUser is CognitoUser for a payload of the trigger E.
func cognitoUser[E keyfuncs.CognitoEvent](ctx context.Context, payload json.RawMessage) (lock.Key, error) {
	var e E
	if err := json.Unmarshal(payload, &e); err != nil {
		return lock.Key{}, &lock.KeyError{Field: "payload", Reason: "is not that of the trigger", Err: err}
	}
	return keyfuncs.CognitoUser(ctx, e)
}

var cognitoTriggers = map[string]keyfuncs.Func[json.RawMessage]{
	"PreSignup":           cognitoUser[events.CognitoEventUserPoolsPreSignup],
	"PreAuthentication":   cognitoUser[events.CognitoEventUserPoolsPreAuthentication],
	"PostConfirmation":    cognitoUser[events.CognitoEventUserPoolsPostConfirmation],
	"PreTokenGen":         cognitoUser[events.CognitoEventUserPoolsPreTokenGen],
	"PreTokenGenV2":       cognitoUser[events.CognitoEventUserPoolsPreTokenGenV2], //nolint:staticcheck // is one of the union
	"PreTokenGenV2_0":     cognitoUser[events.CognitoEventUserPoolsPreTokenGenV2_0],
	"PostAuthentication":  cognitoUser[events.CognitoEventUserPoolsPostAuthentication],
	"MigrateUser":         cognitoUser[events.CognitoEventUserPoolsMigrateUser],
	"DefineAuthChallenge": cognitoUser[events.CognitoEventUserPoolsDefineAuthChallenge],
	"CreateAuthChallenge": cognitoUser[events.CognitoEventUserPoolsCreateAuthChallenge],
	"VerifyAuthChallenge": cognitoUser[events.CognitoEventUserPoolsVerifyAuthChallenge],
	"CustomMessage":       cognitoUser[events.CognitoEventUserPoolsCustomMessage],
	"InboundFederation":   cognitoUser[events.CognitoEventUserPoolsInboundFederation],
}

func TestCognitoUser(t *testing.T) {
	t.Parallel()
	want := lock.Key{Name: "cognito/eu-central-1_Ab1Cd2Ef3/jane"} // no event: the trigger must answer each time
	for file, trigger := range map[string]string{"cognito-postconfirmation.json": "PostConfirmation", "cognito-pretokengen.json": "PreTokenGen"} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cognitoTriggers[trigger](t.Context(), b); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", file, got, err, want)
		}
	}
}

func TestCognitoUserOfEveryTrigger(t *testing.T) {
	t.Parallel()
	for _, trigger := range slices.Sorted(maps.Keys(cognitoTriggers)) {
		key := func(payload string) (lock.Key, error) {
			return cognitoTriggers[trigger](t.Context(), json.RawMessage(payload))
		}
		want := lock.Key{Name: "cognito/p/u%2F1"}
		if got, err := key(`{"userPoolId": "p", "userName": "u/1"}`); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", trigger, got, err, want)
		}
		_, err := key(`{"userName": "u"}`)
		refused(t, trigger, err, "userPoolId", "missing")
		_, err = key(`{"userPoolId": "p"}`)
		refused(t, trigger, err, "userName", "key function of your own")
	}
}

func TestCognitoUserTellsApart(t *testing.T) {
	t.Parallel()
	seen := map[lock.Key]string{}
	for _, payload := range []string{`{"userPoolId": "p", "userName": "u"}`, `{"userPoolId": "p", "userName": "v"}`, `{"userPoolId": "q", "userName": "u"}`, `{"userPoolId": "p/u", "userName": "u"}`, `{"userPoolId": "p", "userName": "u/u"}`} {
		k, err := cognitoTriggers["PreSignup"](t.Context(), json.RawMessage(payload))
		if other, ok := seen[k]; ok || err != nil {
			t.Errorf("%s and %s both give %+v, %v", payload, other, k, err)
		}
		seen[k] = payload
	}
}

package keyfuncs_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

// cognitoUser is CognitoUser for the JSON of the trigger E.
func cognitoUser[E awsevents.CognitoEvent](ctx context.Context, payload json.RawMessage) (lock.Key, error) {
	var e E
	if err := json.Unmarshal(payload, &e); err != nil {
		return lock.Key{}, &lock.NoKeyError{Field: "payload", Reason: "is not that of the trigger", Err: err}
	}
	return services.CognitoUser(ctx, e)
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
	gives(t, "cognito-postconfirmation.json", cognitoTriggers["PostConfirmation"], want)
	gives(t, "cognito-pretokengen.json", cognitoTriggers["PreTokenGen"], want)
}

func TestCognitoUserOfEveryTrigger(t *testing.T) {
	t.Parallel()
	for trigger, key := range cognitoTriggers {
		t.Run(trigger, func(t *testing.T) {
			t.Parallel()
			want := lock.Key{Name: "cognito/p/u%2F1"}
			if got, err := key(t.Context(), json.RawMessage(`{"userPoolId": "p", "userName": "u/1"}`)); got != want || err != nil {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
			_, err := key(t.Context(), json.RawMessage(`{"userName": "u"}`))
			refused(t, "no user pool", err, "userPoolId", "missing")
			_, err = key(t.Context(), json.RawMessage(`{"userPoolId": "p"}`))
			refused(t, "no user", err, "userName", "key function of your own")
		})
	}
}

func TestCognitoUserTellsApart(t *testing.T) {
	t.Parallel()
	keys := map[string]func() (lock.Key, error){}
	for _, payload := range []string{`{"userPoolId": "p", "userName": "u"}`, `{"userPoolId": "p", "userName": "v"}`, `{"userPoolId": "q", "userName": "u"}`, `{"userPoolId": "p/u", "userName": "u"}`, `{"userPoolId": "p", "userName": "u/u"}`} {
		keys[payload] = func() (lock.Key, error) { return cognitoTriggers["PreSignup"](t.Context(), json.RawMessage(payload)) }
	}
	distinct(t, keys)
}

package middleware

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lambdalock/lambdalock/internal/event/eventkind"
	"github.com/lambdalock/lambdalock/lock"
)

// problem tells a client why its request did not run. Status and title are
// those of HTTP, so it needs no type of its own.
// https://www.rfc-editor.org/rfc/rfc9457
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retryAfter int // in seconds; zero: the client need not try again
}

// problemOf returns what to tell the client, or nil if err is not the client's
// business. The client does not see the cause of a *lock.NoKeyError, which may
// tell more than the request did. The statuses are those of
// https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/.
func (w *wrapper) problemOf(err error, now time.Time) *problem {
	var (
		held      *lock.HeldError
		completed *lock.CompletedError
		noKey     *lock.NoKeyError
	)
	switch {
	case errors.As(err, &noKey) && noKey.Client:
		return newProblem(http.StatusBadRequest, cmp.Or(noKey.Field, "the request")+" "+noKey.Reason)
	case errors.As(err, new(*lock.InterruptedError)):
		// Not 409, which the draft has for a request that is still being processed:
		// this one is over, and to repeat it does not help.
		return newProblem(http.StatusInternalServerError, "an earlier attempt of this request was interrupted, and its outcome is unknown: find out whether it took effect before you send it under a new key")
	case errors.As(err, new(*lock.PayloadMismatchError)):
		return newProblem(http.StatusUnprocessableEntity, "the key was used for another request or by another caller: send a new key with every request, and the same one only with its retries")
	case errors.As(err, &held):
		detail := "another request for the same resource is in progress"
		switch {
		case held.Duplicate:
			detail = "this request is already in progress"
		case held.Cooldown:
			detail = "the last request for the same resource was too short a time ago"
		}
		p := newProblem(http.StatusConflict, detail)
		p.retryAfter = retryAfter(held, now)
		return p
	case errors.As(err, &completed) && completed.Stale:
		return newProblem(http.StatusConflict, "a later request for the same resource was already completed")
	case completed != nil && w.interrupted.skips: // the row does not tell the two apart
		return newProblem(http.StatusConflict, "this request was already completed, or an earlier attempt of it was interrupted and its outcome is unknown, and no response is stored: find out whether it took effect before you send it under a new key")
	case completed != nil:
		return newProblem(http.StatusConflict, "this request was already completed, and its response is not stored")
	}
	return nil
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// retryAfter returns in how many seconds the name may be free: about as long as
// it has been held already, because a holder that has worked for a while is
// likely to work for as long again. It is at least 1, and no more than the time
// until the lease or the cooldown ends.
func retryAfter(held *lock.HeldError, now time.Time) int {
	wait := held.Until.Sub(now) // negative if the store did not say
	if !held.Cooldown {
		wait = min(wait, now.Sub(held.Since))
	}
	return max(1, int(math.Ceil(wait.Seconds())))
}

// response returns the response for the client behind the gateway.
func (p *problem) response(gateway eventkind.Gateway) *response {
	headers := map[string]string{"Content-Type": "application/problem+json"}
	if p.retryAfter > 0 {
		headers["Retry-After"] = strconv.Itoa(p.retryAfter)
	}
	body, _ := json.Marshal(p) // text and numbers always have a JSON form
	return newResponse(gateway, p.Status, headers, string(body))
}

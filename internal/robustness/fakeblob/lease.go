package fakeblob

import (
	"net/http"
	"strconv"
	"time"
)

// lease is the last lease of a blob. Without an id there is none.
// https://learn.microsoft.com/rest/api/storageservices/lease-blob
type lease struct {
	id      string
	seconds int       // -1: infinite
	until   time.Time // end of the lease, or of the time in which it breaks
	broken  bool      // or breaking, before until
}

// locked reports whether the blob is leased, or breaking.
func (l *lease) locked(now time.Time) bool {
	return l.id != "" && (now.Before(l.until) || l.seconds < 0 && !l.broken)
}

// state returns the state of the lease, as far as tests need it.
func (l *lease) state(now time.Time) string {
	switch {
	case l.id == "":
		return "available"
	case l.locked(now) && l.broken:
		return "breaking"
	case l.locked(now):
		return "leased"
	case l.broken:
		return "broken"
	}
	return "expired"
}

// writable reports whether the request may change the blob, or says why not.
func (b *blob) writable(w http.ResponseWriter, r *http.Request, now time.Time) bool {
	id, locked := r.Header.Get("x-ms-lease-id"), b.lease.locked(now)
	switch {
	case locked && id == "":
		fail(w, http.StatusPreconditionFailed, "LeaseIdMissing")
	case locked && id != b.lease.id:
		fail(w, http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation")
	case !locked && id != "":
		fail(w, http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation")
	default:
		return true
	}
	return false
}

func (b *blob) leaseAction(w http.ResponseWriter, r *http.Request, action string, now time.Time) {
	l, id := &b.lease, r.Header.Get("x-ms-lease-id")
	refuse := func(code string) { fail(w, http.StatusConflict, code) }
	status := http.StatusOK
	switch action {
	case "acquire":
		id = r.Header.Get("x-ms-proposed-lease-id")
		switch {
		case l.locked(now) && l.id != id:
			refuse("LeaseAlreadyPresent")
			return
		case l.locked(now) && l.broken:
			refuse("LeaseIsBreakingAndCannotBeAcquired")
			return
		}
		seconds, _ := strconv.Atoi(r.Header.Get("x-ms-lease-duration"))
		*l = lease{id: id, seconds: seconds}
		l.extend(now)
		status = http.StatusCreated
	case "break":
		if l.id == "" {
			refuse("LeaseNotPresentWithLeaseOperation")
			return
		}
		l.breakUp(r.Header.Get("x-ms-lease-break-period"), now)
		status = http.StatusAccepted
	case "renew", "release":
		switch {
		case l.id == "" || l.id != id:
			refuse("LeaseIdMismatchWithLeaseOperation")
			return
		case action == "release":
			*l = lease{}
		case l.broken:
			refuse("LeaseIsBrokenAndCannotBeRenewed")
			return
		default: // even after its end, if nothing has happened to the blob
			l.extend(now)
		}
	}
	b.head(w)
	w.Header().Set("x-ms-lease-id", id)
	w.WriteHeader(status)
}

func (l *lease) extend(now time.Time) { l.until = now.Add(time.Duration(l.seconds) * time.Second) }

// breakUp ends the lease after a period, but not later than it would have
// ended. Without a period an infinite lease ends immediately.
func (l *lease) breakUp(period string, now time.Time) {
	if period != "" || l.seconds < 0 && !l.broken {
		seconds, _ := strconv.Atoi(period)
		end := now.Add(time.Duration(seconds) * time.Second)
		if l.seconds < 0 && !l.broken || end.Before(l.until) {
			l.until = end
		}
	}
	l.broken = true
}

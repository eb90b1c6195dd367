package locallambda

import (
	"encoding/json"
	"net/http"
)

const extensionRoot = "/2020-01-01/extension"

var (
	registrationClosed = &refusal{http.StatusForbidden, "Extension.RegistrationClosed", "Extension registration closed already"}
	noEvents           = &refusal{http.StatusForbidden, "Extension.InvalidEventType", "there are no events for extensions here"}
)

// registerExtension lets a runtime register an extension in its own process,
// without events. With that it asks to be told of its end with SIGTERM, as
// lambda.WithEnableSIGTERM does:
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
func (proc *process) registerExtension(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Events []string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		reply(w, &refusal{http.StatusBadRequest, "InvalidRequestFormat", err.Error()})
		return
	}
	if refused := proc.extend(asked.Events); refused != nil {
		reply(w, refused)
		return
	}
	w.Header().Set("Lambda-Extension-Identifier", newRequestID())
	w.Header().Set("Content-Type", contentTypeJSON)
	_ = json.NewEncoder(w).Encode(map[string]string{"functionName": proc.p.cfg.Function, "functionVersion": "$LATEST"}) // a lost connection shows as the end of the process
}

func (proc *process) extend(events []string) *refusal {
	proc.p.mu.Lock()
	defer proc.p.mu.Unlock()
	switch {
	case len(events) > 0:
		return noEvents
	case proc.ready:
		return registrationClosed
	}
	proc.extended = true
	return nil
}

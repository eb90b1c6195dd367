package middleware

// ForgetDefaultStores makes the next test open its own.
func ForgetDefaultStores() {
	stores.Lock()
	defer stores.Unlock()
	stores.byTable = nil
}

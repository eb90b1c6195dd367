package timeline

// svgLook is how a kind looks in the picture besides its colours, which the
// style sheet gives to its class.
type svgLook struct {
	class   string
	icon    string // path data in a 12 by 12 box
	meaning string // for the legend
}

var svgLooks = [...]svgLook{
	Ran:      {"ran", "M2.5 6.5L5 9L9.5 3.5", "handler ran"},
	Skipped:  {"skipped", "M3 3L6 6L3 9M6.5 3L9.5 6L6.5 9", "skipped: done before or stale"},
	Refused:  {"refused", "M3 5.8H9V10H3ZM4.2 5.8V4.1A1.8 1.8 0 0 1 7.8 4.1V5.8", "refused: lock is held, will be redelivered"},
	Failed:   {"failed", "M6 2.2V6.8M6 9.6V9.7", "handler failed"},
	Killed:   {"killed", "M3 3L9 9M9 3L3 9", "process killed"},
	TookOver: {"tookover", "M9.4 7A3.5 3.5 0 1 1 8.7 3.8M9 1.4V4.1H6.3", "ran after taking over from a dead holder"},
}

// svgStyle has no custom properties because not every renderer knows them.
// The card has a background in both modes, since a picture in a README follows
// the system's mode while the page around it may not.
const svgStyle = `
text{font-family:-apple-system,BlinkMacSystemFont,"Segoe UI",Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}
.code,.code tspan{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:11px}
.title{font-size:17px;font-weight:600}
.head{font-size:12px;font-weight:600}
.name{font-weight:600;fill:#424a53}
.soft{font-size:10.5px;fill:#59636e}
.badge{fill:#424a53}
.number{font-size:11px;font-weight:700;fill:#fff}
.card{fill:#fff;stroke:#d1d9e0}
.panel{fill:#f6f8fa}
.rule{stroke:#8c959f;stroke-width:1.5}
.lane{stroke:#d1d9e0}
.tick{stroke:#afb8c1}
.grid{stroke:#e4e8ec}
.fold{fill:#eaeef2}
.wave{fill:none;stroke:#8c959f;stroke-dasharray:2 3}
.notch{fill:#eaeef2}
.leader{stroke:#8c959f}
.halo{paint-order:stroke;stroke:#f6f8fa;stroke-width:3px;stroke-linejoin:round}
.icon{fill:none;stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}
.lock{font-weight:600}
.ran .bar{fill:#d2efda;stroke:#2f7d4f}
.ran .icon{stroke:#1f6a3d}
.skipped .bar{fill:#fff;stroke:#6e7781;stroke-dasharray:3 2}
.skipped .icon{stroke:#59636e}
.refused .bar{fill:url(#hatch);stroke:#9a6700}
.refused .icon{stroke:#7d5200}
.hatch{fill:#fff6d6}
.stripe{stroke:#f0d489;stroke-width:2.5}
.failed .bar{fill:#ffdcd7;stroke:#c0362c;stroke-width:2}
.failed .icon{stroke:#b3261e;stroke-width:2}
.killed .bar{fill:#57606a;stroke:#32383f}
.killed .icon{stroke:#32383f;stroke-width:2}
.killed .in.icon{stroke:#fff}
.killed .in.code{fill:#fff}
.tookover .bar{fill:#d8e6ff;stroke:#2c5fb3}
.tookover .edge{fill:#2c5fb3}
.tookover .icon{stroke:#20509c}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.name{fill:#c9d1d9}
.soft{fill:#9aa4af}
.badge{fill:#c9d1d9}
.number{fill:#0d1117}
.card{fill:#0d1117;stroke:#30363d}
.panel{fill:#161b22}
.rule{stroke:#6e7681}
.lane{stroke:#2a313a}
.tick{stroke:#484f58}
.grid{stroke:#21272f}
.fold{fill:#21272f}
.wave{stroke:#6e7681}
.notch{fill:#21272f}
.leader{stroke:#6e7681}
.halo{stroke:#161b22}
.ran .bar{fill:#1b3f2a;stroke:#46a76b}
.ran .icon{stroke:#6fd394}
.skipped .bar{fill:#0d1117;stroke:#8b949e}
.skipped .icon{stroke:#b1bac4}
.refused .bar{stroke:#d29922}
.refused .icon{stroke:#e9b949}
.hatch{fill:#2e2509}
.stripe{stroke:#524016}
.failed .bar{fill:#4d1c1a;stroke:#f26d63}
.failed .icon{stroke:#ff8a80}
.killed .bar{fill:#8b949e;stroke:#c9d1d9}
.killed .icon{stroke:#e6edf3}
.killed .in.icon{stroke:#0d1117}
.killed .in.code{fill:#0d1117}
.tookover .bar{fill:#17325c;stroke:#5b94ea}
.tookover .edge{fill:#5b94ea}
.tookover .icon{stroke:#8ab6ff}
}
`

// svgDefs holds the pattern of refused bars.
const svgDefs = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<rect class="hatch" width="6" height="6"/><path class="stripe" d="M0 0V6"/></pattern></defs>
`

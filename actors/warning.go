package actors

import "go.uber.org/zap"

// warn tells what is wrong with the group as a whole when that has changed.
func (e *engine) warn(text string) {
	if e.warning == text {
		return
	}

	e.warning = text

	if text == "" {
		e.log.Info("what was wrong with the group is mended")
	} else {
		e.log.Warn("something is wrong with the group", zap.String("warning", text))
	}

	e.publish(&GroupWarned{In: e.in(), Warning: text})
}

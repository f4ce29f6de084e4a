package verdict

// NameShape is what the names of subtables look like, as a set: where a core
// used names of several shapes, all of their bits are set. The zero value: not
// known.
type NameShape uint8

// The shapes.
const (
	// BuiltName is made of the core's number alone, …tmm_<core>.
	BuiltName NameShape = 1 << iota
	// FoundName carries what was tried behind the core's number,
	// …tmm_<core>_<n>, as a discovery's names do.
	FoundName
	// OtherName is any other: a fixed name, or one that a request brought.
	OtherName
)

// ShapeOf is the shape of a name.
func ShapeOf[T string | []byte](name T) NameShape {
	switch _, more, ok := NumberedName(name); {
	case !ok:
		return OtherName
	case more:
		return FoundName
	}
	return BuiltName
}

// NumberedName reads the core's number behind the last "tmm_" of a name, and
// says whether anything follows it. ok: there is such a number.
func NumberedName[T string | []byte](name T) (core int, more, ok bool) {
	const mark = "tmm_"
	for i := len(name) - len(mark); i >= 0; i-- {
		if string(name[i:i+len(mark)]) != mark {
			continue
		}
		at := i + len(mark)
		for ; at < len(name) && name[at] >= '0' && name[at] <= '9'; at++ {
			if core >= 1<<16 { // no core has such a number
				return 0, false, false
			}
			core, ok = core*10+int(name[at]-'0'), true
		}
		return core, at < len(name), ok
	}
	return 0, false, false
}

proc list_all {name} {
    # want: keys-touch
    return [table keys -subtable $name]
}

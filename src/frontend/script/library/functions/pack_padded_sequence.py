def pack_padded_sequence(input: Tensor, lengths: Union[Tensor, List[int]], batch_first: bool = False, enforce_sorted: bool = True) -> torch.nn.utils.rnn.PackedSequence:
    if isinstance(lengths, Tensor):
        counts = lengths.to(torch.int64)
    else:
        counts = torch.as_tensor(lengths, dtype=torch.int64, device='cpu')
    order: Optional[Tensor] = None
    if not enforce_sorted:
        counts, places = torch.sort(counts, descending=True)
        places = places.to(input.device)
        input = input.index_select(0 if batch_first else 1, places)
        order = places
    data, sizes = torch._pack_padded_sequence(input, counts, batch_first)
    return torch.nn.utils.rnn.PackedSequence(data, sizes, order, torch.nn.utils.rnn.invert_permutation(order))

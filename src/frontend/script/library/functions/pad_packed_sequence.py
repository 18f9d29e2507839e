def pad_packed_sequence(sequence: torch.nn.utils.rnn.PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    longest = sequence.batch_sizes.size(0)
    length = longest
    if total_length is not None:
        if total_length < longest:
            raise ValueError('Expected total_length to be at least the length of the longest sequence in input, but got total_length={} and max sequence length being {}'.format(total_length, longest))
        length = total_length
    padded, lengths = torch._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, length)
    back = sequence.unsorted_indices
    if back is not None:
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths
